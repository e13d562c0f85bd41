// Storage: rates and latencies of reads at random places of a file, past the page cache (O_DIRECT),
// by request size and by requests in flight, which are so many threads.
#include <fcntl.h>
#include <fmt/format.h>
#include <linux/magic.h>
#include <sys/statfs.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <mutex>
#include <random>
#include <thread>

#include "base/clock.h"
#include "probes/calibration/calibration.h"

namespace headrace::probes {
namespace {

constexpr int64_t kDirectAlignment = 4096, kChunkBytes = 1 << 20, kLeastFileBytes = 16 << 20;
constexpr int64_t kSizes[] = {4 << 10, 64 << 10, 1 << 20};
constexpr int kDepths[] = {1, 4, 16, 32};

struct FreeBuffer {
  void operator()(uint8_t* p) const { std::free(p); }
};
using Buffer = std::unique_ptr<uint8_t, FreeBuffer>;
Buffer AlignedBuffer(int64_t size) {
  return Buffer(static_cast<uint8_t*>(
      std::aligned_alloc(static_cast<size_t>(kDirectAlignment), static_cast<size_t>(size))));
}

// A file that has no name any more: it is gone however this process ends.
class NamelessFile {
 public:
  explicit NamelessFile(const std::string& folder) {
    std::string path = folder + "/.headrace-calibrate-XXXXXX";
    const int plain = mkostemp(path.data(), O_CLOEXEC);
    if (plain < 0) {
      Fail(fmt::format("create a file in {}", folder));
      return;
    }
    fd_ = open(path.c_str(), O_RDWR | O_DIRECT | O_CLOEXEC);
    if (fd_ < 0) Fail("open it with O_DIRECT");
    unlink(path.c_str());
    close(plain);
  }
  ~NamelessFile() {
    if (fd_ >= 0) close(fd_);
  }
  NamelessFile(const NamelessFile&) = delete;
  NamelessFile& operator=(const NamelessFile&) = delete;
  int fd() const { return fd_; }
  const std::string& failure() const { return failure_; }

 private:
  void Fail(const std::string& action) {
    failure_ = fmt::format("{}: {}", action, std::strerror(errno));
  }
  int fd_ = -1;
  std::string failure_;
};

struct Point {
  double bytes_per_s = 0, latency_ns = 0;
  int error = 0;  // of a read that failed
};

// Reads for `limit_ns` with `depth` threads.
Point ReadRandomly(int fd, int64_t file_bytes, int64_t size, int depth, int64_t limit_ns) {
  std::mutex mutex;
  std::vector<int64_t> latencies;
  std::atomic<int64_t> bytes = 0;
  std::atomic<int> error = 0;
  const int64_t begin = MonotonicNs(), end = begin + limit_ns;
  std::vector<std::thread> threads;
  for (int t = 0; t < depth; t++) {
    threads.emplace_back([&, t] {
      const Buffer buffer = AlignedBuffer(size);
      std::mt19937_64 random(static_cast<uint64_t>(t) * 7919 + static_cast<uint64_t>(begin));
      std::vector<int64_t> own;
      int64_t own_bytes = 0;
      while (buffer && error == 0) {
        const int64_t slot =
            static_cast<int64_t>(random() % static_cast<uint64_t>(file_bytes / size));
        const int64_t before = MonotonicNs();
        if (before >= end) break;
        const ssize_t n = pread(fd, buffer.get(), static_cast<size_t>(size), slot * size);
        if (n != size) error = n < 0 ? errno : EIO;
        own.push_back(MonotonicNs() - before);
        own_bytes += size;
      }
      bytes += own_bytes;
      const std::lock_guard lock(mutex);
      latencies.insert(latencies.end(), own.begin(), own.end());
    });
  }
  for (std::thread& thread : threads) thread.join();
  Point point;
  const double seconds = static_cast<double>(MonotonicNs() - begin) * 1e-9;
  point.error = error;
  if (latencies.empty() && error == 0) point.error = ENOMEM;  // for the buffers
  if (point.error != 0) return point;
  point.bytes_per_s = static_cast<double>(bytes) / seconds;
  const auto middle = latencies.begin() + static_cast<std::ptrdiff_t>(latencies.size() / 2);
  std::nth_element(latencies.begin(), middle, latencies.end());
  point.latency_ns = static_cast<double>(*middle);
  return point;
}

// Writes until the file has its size or the time is over; returns the bytes written, or -1.
int64_t Fill(const CalibrationOptions& options, int fd, int64_t goal, Calibration* out) {
  const Buffer buffer = AlignedBuffer(kChunkBytes);
  std::mt19937_64 random(static_cast<uint64_t>(MonotonicNs()));
  for (int64_t i = 0; i < kChunkBytes; i += 8) {  // nothing a device could compress
    const uint64_t word = random();
    std::memcpy(buffer.get() + i, &word, 8);
  }
  const int64_t begin = MonotonicNs();
  int64_t written = 0;
  while (written < goal && MonotonicNs() - begin < 2 * options.part_ns) {
    const ssize_t n = pwrite(fd, buffer.get(), static_cast<size_t>(kChunkBytes), written);
    if (n != kChunkBytes) return -1;
    written += kChunkBytes;
  }
  if (fdatasync(fd) != 0) return -1;
  const double seconds = static_cast<double>(MonotonicNs() - begin) * 1e-9;
  Ceiling ceiling;
  ceiling.metric = "storage_write_bytes_per_s";
  ceiling.unit = "B/s";
  ceiling.size_bytes = kChunkBytes;
  ceiling.depth_count = 1;
  ceiling.value = ceiling.minimum = ceiling.maximum = static_cast<double>(written) / seconds;
  ceiling.repetitions_count = 1;
  ceiling.note = "one file written once, with fdatasync";
  out->ceilings.push_back(std::move(ceiling));
  return written;
}

// Reads of `size` bytes with `depth` at a time, several times over: their rate and latency. The
// error of one that failed, or 0.
int MeasureReads(const CalibrationOptions& options, int fd, int64_t file_bytes, int64_t size,
                 int depth, Calibration* out) {
  constexpr int kRepetitions = 3;
  Ceiling rate, latency;
  rate.metric = "storage_read_bytes_per_s";
  rate.unit = "B/s";
  latency.metric = "storage_read_latency_ns";
  latency.unit = "ns";
  latency.note = "median of the requests of one repetition";
  rate.size_bytes = latency.size_bytes = size;
  rate.depth_count = latency.depth_count = depth;
  const auto take = [](Ceiling* ceiling, double figure, bool first) {
    ceiling->minimum = first ? figure : std::min(ceiling->minimum, figure);
    ceiling->maximum = first ? figure : std::max(ceiling->maximum, figure);
    ceiling->repetitions_count++;
  };
  for (int i = 0; i < kRepetitions; i++) {
    const Point point = ReadRandomly(fd, file_bytes, size, depth, options.part_ns / 9);
    if (point.error != 0) return point.error;
    take(&rate, point.bytes_per_s, i == 0);
    take(&latency, point.latency_ns, i == 0);
  }
  rate.value = rate.maximum;
  latency.value = latency.minimum;
  out->ceilings.push_back(std::move(rate));
  out->ceilings.push_back(std::move(latency));
  return 0;
}

}  // namespace

void CalibrateStorage(const CalibrationOptions& options, Calibration* out) {
  const auto skip = [&](const std::string& reason, const std::string& fix) {
    out->skips.push_back({"storage", reason, fix});
  };
  const std::string other = "--folder FOLDER on the storage that the tables are on";
  struct statfs info = {};
  if (statfs(options.folder.c_str(), &info) != 0) {
    skip(fmt::format("statfs {}: {}", options.folder, std::strerror(errno)), other);
    return;
  }
  if (static_cast<uint32_t>(info.f_type) == TMPFS_MAGIC ||
      static_cast<uint32_t>(info.f_type) == RAMFS_MAGIC) {
    skip(fmt::format("{} is in memory (tmpfs)", options.folder), other);
    return;
  }
  const auto free_bytes = static_cast<int64_t>(info.f_bavail) * static_cast<int64_t>(info.f_bsize);
  int64_t goal = std::min(options.file_bytes, free_bytes / 10);
  goal -= goal % kChunkBytes;
  if (goal < kLeastFileBytes) {
    skip(fmt::format("{} has only {} bytes free", options.folder, free_bytes),
         "free space, or " + other);
    return;
  }
  const NamelessFile file(options.folder);
  if (file.fd() < 0) {
    skip(file.failure(), other);
    return;
  }
  if (options.progress) options.progress(0, "storage: writing the file");
  const int64_t file_bytes = Fill(options, file.fd(), goal, out);
  if (file_bytes < kLeastFileBytes) {
    skip(file_bytes < 0 ? fmt::format("write past the page cache: {}", std::strerror(errno))
                        : "writing 16 MiB took too long",
         other);
    return;
  }
  double fraction = 0.2;
  for (const int64_t size : kSizes) {
    for (const int depth : kDepths) {
      if (options.interrupted && options.interrupted()) return;
      if (options.progress) {
        options.progress(fraction, fmt::format("storage: {} KiB, depth {}", size >> 10, depth));
      }
      fraction += 0.8 / static_cast<double>(std::size(kSizes) * std::size(kDepths));
      if (const int error = MeasureReads(options, file.fd(), file_bytes, size, depth, out)) {
        skip(fmt::format("read past the page cache: {}", std::strerror(error)), other);
        return;
      }
    }
  }
}

}  // namespace headrace::probes
