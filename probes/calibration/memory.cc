// Memory bandwidth: reads and copies over a working set far larger than the last-level cache, with
// 1, 2, 4, ... threads. A smaller set, or a sum in one register, would measure the cache or the
// adder instead.
#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <barrier>
#include <cerrno>
#include <cstring>
#include <thread>

#include "base/clock.h"
#include "base/cpu.h"
#include "base/units.h"
#include "probes/calibration/calibration.h"
#include "probes/host/text.h"

namespace headrace::probes {
namespace {

constexpr int64_t kUnknownCacheBytes = 32 << 20;
constexpr int64_t kPageAlignment = 1 << 12;
constexpr size_t kMaxPoints = 5;

// "32768K", "480M".
int64_t ParseCacheSize(const std::string& text) {
  if (text.empty()) return 0;
  const char unit = text.back();
  const int64_t factor = unit == 'K' ? 1 << 10 : unit == 'M' ? 1 << 20 : 0;
  const auto number = Count(std::string_view(text).substr(0, text.size() - 1));
  return number && factor && *number < (int64_t{1} << 30) ? *number * factor : 0;
}

int64_t LastLevelCacheBytes() {
  const Host host;
  const std::string folder = "/sys/devices/system/cpu/cpu0/cache";
  int64_t bytes = 0;
  for (const std::string& index : host.List(folder)) {
    const auto size = ReadWord(host, folder + "/" + index + "/size");
    if (size) bytes = std::max(bytes, ParseCacheSize(*size));
  }
  return bytes > 0 ? bytes : kUnknownCacheBytes;
}

int64_t AvailableBytes() {
  const auto text = Host().Read("/proc/meminfo", 65536);
  const auto kib = text ? KeyedCount(*text, "MemAvailable") : std::nullopt;
  const auto budget = static_cast<int64_t>(ReadMemoryBudget().bytes);
  return kib ? std::min(budget, *kib * 1024) : budget;
}

// Vectorised by the compiler for every processor: eight sums keep the adders out of the way.
uint64_t Sum(const uint8_t* data, int64_t size) {
  using Vector = uint64_t __attribute__((vector_size(64), aligned(64), may_alias));
  Vector a = {}, b = {}, c = {}, d = {};
  const auto* v = reinterpret_cast<const Vector*>(data);
  for (int64_t i = 0; i + 4 <= size / 64; i += 4) {
    a += v[i];
    b += v[i + 1];
    c += v[i + 2];
    d += v[i + 3];
  }
  a += b + c + d;
  uint64_t sum = 0;
  for (int i = 0; i < 8; i++) sum += a[i];
  return sum;
}

// Seconds from the first thread's begin to the last one's end, while `threads` threads together run
// body(thread). Each looks at the clock itself: whoever waits for them may be late on a full
// machine.
template <typename Body>
double RunTogether(int threads, Body body) {
  std::barrier ready(threads);
  std::vector<int64_t> begins(static_cast<size_t>(threads)), ends(begins.size());
  std::vector<std::thread> pool;
  for (int t = 0; t < threads; t++) {
    pool.emplace_back([&, t] {
      ready.arrive_and_wait();
      begins[static_cast<size_t>(t)] = MonotonicNs();
      body(t);
      ends[static_cast<size_t>(t)] = MonotonicNs();
    });
  }
  for (std::thread& thread : pool) thread.join();
  const int64_t begin = *std::min_element(begins.begin(), begins.end());
  const int64_t end = *std::max_element(ends.begin(), ends.end());
  return static_cast<double>(std::max<int64_t>(1, end - begin)) * 1e-9;
}

class Arena {
 public:
  explicit Arena(int64_t size) : size_(size) {
    void* p = mmap(nullptr, static_cast<size_t>(size), PROT_READ | PROT_WRITE,
                   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (p == MAP_FAILED) return;
    data_ = static_cast<uint8_t*>(p);
    madvise(p, static_cast<size_t>(size), MADV_HUGEPAGE);
  }
  ~Arena() {
    if (data_) munmap(data_, static_cast<size_t>(size_));
  }
  Arena(const Arena&) = delete;
  Arena& operator=(const Arena&) = delete;
  uint8_t* data() const { return data_; }

 private:
  uint8_t* data_ = nullptr;
  int64_t size_;
};

std::vector<int> ThreadCounts(int most) {
  std::vector<int> counts;
  for (int n = 1; n < most; n *= 2) counts.push_back(n);
  counts.push_back(most);
  while (counts.size() > kMaxPoints) counts.erase(counts.begin() + 1);  // 1 and the largest stay
  return counts;
}

}  // namespace

void CalibrateMemory(const CalibrationOptions& options, Calibration* out) {
  const int64_t cache = LastLevelCacheBytes();
  int64_t bytes = options.memory_bytes > 0 ? options.memory_bytes : 4 * cache;
  const int64_t limit = AvailableBytes() / 2;
  std::string note;
  if (bytes > limit) {
    bytes = limit;
    note = fmt::format(
        "working set of {} only: less than 4 x the last-level cache of {}, so the "
        "cache may help",
        FormatBytes(static_cast<double>(bytes)), FormatBytes(static_cast<double>(cache)));
  }
  const int most = options.max_threads > 0 ? options.max_threads
                                           : std::max(1, static_cast<int>(ReadCoreBudget().cores));
  bytes -= bytes % (2 * kPageAlignment * most);
  const Arena arena(std::max<int64_t>(bytes, 1));
  if (bytes <= 0 || !arena.data()) {
    out->skips.push_back({"memory", fmt::format("mmap {} bytes: {}", bytes, std::strerror(errno)),
                          "more free memory"});
    return;
  }
  if (options.progress) options.progress(0, "memory: filling the working set");
  RunTogether(most, [&](int t) {  // pages land on the node of the thread that touches them first
    const int64_t part = bytes / most;
    std::memset(arena.data() + t * part, t + 1, static_cast<size_t>(part));
  });
  const std::vector<int> counts = ThreadCounts(most);
  double fraction = 0.2;
  for (const int threads : counts) {
    if (options.interrupted && options.interrupted()) return;
    if (options.progress) options.progress(fraction, fmt::format("memory: {} threads", threads));
    fraction += 0.8 / static_cast<double>(counts.size());
    Ceiling ceiling;
    ceiling.unit = "B/s";
    ceiling.threads_count = threads;
    ceiling.size_bytes = bytes;
    ceiling.note = note;
    ceiling.metric = "memory_read_bytes_per_s";
    const int64_t part = bytes / threads / kPageAlignment * kPageAlignment;
    Repeat(
        ceiling, true, options.part_ns / 2,
        [&] {
          std::vector<uint64_t> sums(static_cast<size_t>(threads) * 8);  // no shared cache line
          const double seconds = RunTogether(threads, [&](int t) {
            sums[static_cast<size_t>(t) * 8] = Sum(arena.data() + t * part, part);
          });
          asm volatile("" ::"r"(sums.data()) : "memory");
          return static_cast<double>(part * threads) / seconds;
        },
        out);
    ceiling.metric = "memory_copy_bytes_per_s";
    ceiling.note =
        "bytes copied: each is read once and written once" + (note.empty() ? "" : "; " + note);
    const int64_t half = part / 2 / 64 * 64;
    Repeat(
        ceiling, true, options.part_ns / 2,
        [&] {
          const double seconds = RunTogether(threads, [&](int t) {
            uint8_t* to = arena.data() + t * part;
            std::memcpy(to, to + half, static_cast<size_t>(half));
            asm volatile("" ::"r"(to) : "memory");
          });
          return static_cast<double>(half * threads) / seconds;
        },
        out);
  }
}

}  // namespace headrace::probes
