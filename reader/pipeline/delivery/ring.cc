#include "reader/pipeline/delivery/ring.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <linux/futex.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <ctime>

#include "base/clock.h"
#include "base/error.h"

namespace headrace::reader {
namespace {

// A sleep and a wake-up cost 20 to 40 us, the waker its share. Frames that come faster than that
// are waited for by spinning; where one did not, that is tried for a moment only.
constexpr int64_t kSpinNs = 60'000, kShortSpinNs = 5'000;
// A wait up to here, a sleep and a wake-up included, would mostly have ended within kSpinNs.
constexpr int64_t kShortWaitNs = 75'000;
constexpr long kSleepNs = 100'000'000;
constexpr int kSeals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;

inline void Pause() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

}  // namespace

SharedMapping::SharedMapping(int fd, uint64_t bytes, int times)
    : fd_(fd), bytes_(bytes), times_(times) {
  const uint64_t all = bytes * static_cast<uint64_t>(times);
  // One hole for all, then the pages into it: the copies must be neighbours.
  void* hole = mmap(nullptr, all, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (hole == MAP_FAILED) {
    close(fd_);
    throw ErrnoError(errno, fmt::format("map {} bytes of", all), "shared memory");
  }
  data_ = static_cast<uint8_t*>(hole);
  for (int i = 0; i < times; ++i) {
    if (mmap(data_ + static_cast<uint64_t>(i) * bytes, bytes, PROT_READ | PROT_WRITE,
             MAP_SHARED | MAP_FIXED, fd, 0) == MAP_FAILED) {
      const int error = errno;
      munmap(data_, all);
      close(fd_);
      throw ErrnoError(error, fmt::format("map {} bytes of", bytes), "shared memory");
    }
  }
}

SharedMapping::~SharedMapping() {
  munmap(data_, bytes_ * static_cast<uint64_t>(times_));
  close(fd_);
}

std::shared_ptr<SharedMapping> SharedMapping::Create(uint64_t bytes, int times) {
  const int fd = memfd_create("headrace.delivery", MFD_CLOEXEC | MFD_ALLOW_SEALING);
  if (fd < 0) throw ErrnoError(errno, "create", "shared memory");
  if (ftruncate(fd, static_cast<off_t>(bytes)) != 0 || fcntl(fd, F_ADD_SEALS, kSeals) != 0) {
    const int error = errno;
    close(fd);
    throw ErrnoError(error, fmt::format("size {} bytes of", bytes), "shared memory");
  }
  return std::shared_ptr<SharedMapping>(new SharedMapping(fd, bytes, times));
}

std::shared_ptr<SharedMapping> SharedMapping::Open(int fd, uint64_t bytes, int times) {
  struct stat status = {};
  const int seals = fcntl(fd, F_GET_SEALS);
  const auto page = static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
  // Without the seals a producer could take pages away under our eyes.
  if (fd < 0 || fstat(fd, &status) != 0 || seals < 0 || (seals & F_SEAL_SHRINK) == 0 ||
      bytes == 0 || bytes % page != 0 || bytes > kMaxRingBytes ||
      static_cast<uint64_t>(status.st_size) != bytes) {
    if (fd >= 0) close(fd);
    throw Error(ExitCode::kBadData, "the producer passed something that is not a ring");
  }
  return std::shared_ptr<SharedMapping>(new SharedMapping(fd, bytes, times));
}

void RingWait::Await(std::atomic<uint32_t>* events, std::atomic<uint32_t>* waits,
                     const std::function<bool()>& ready, const std::function<void()>& idle) {
  const int64_t start = MonotonicNs();
  const int64_t spin_ns = was_short_ ? kSpinNs : kShortSpinNs;
  do {
    for (int i = 0; i < 64; ++i) {
      if (ready()) return;
      Pause();
    }
  } while (MonotonicNs() - start < spin_ns);
  Sleep(events, waits, ready, idle);
  // A long spin that was in vain is not tried again at once.
  was_short_ = !was_short_ && MonotonicNs() - start < kShortWaitNs;
}

void RingWait::Sleep(std::atomic<uint32_t>* events, std::atomic<uint32_t>* waits,
                     const std::function<bool()>& ready, const std::function<void()>& idle) {
  for (;;) {
    // The other side changes its field, then counts an event, then looks at `waits`: between our
    // look at the field and the sleep no change goes unseen.
    waits->store(1);
    const uint32_t seen = events->load();
    if (ready()) break;
    const timespec most = {0, kSleepNs};
    syscall(SYS_futex, reinterpret_cast<uint32_t*>(events), FUTEX_WAIT, seen, &most, nullptr, 0);
    if (ready()) break;
    try {
      idle();
    } catch (...) {
      waits->store(0);
      throw;
    }
  }
  waits->store(0);
}

void NotifyRing(std::atomic<uint32_t>* events, std::atomic<uint32_t>* waits) {
  events->fetch_add(1);
  if (waits->load() != 0)
    syscall(SYS_futex, reinterpret_cast<uint32_t*>(events), FUTEX_WAKE, 1, nullptr, nullptr, 0);
}

}  // namespace headrace::reader
