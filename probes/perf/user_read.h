// UserCounters: hardware counters of the calling thread, read in user space, without a system call:
// for code of the measured process itself that wants counts between two operator borders. Costs
// some 10 ns a counter where the kernel allows it (rdpmc on x86; on arm64 with sysctl
// kernel.perf_user_access=1), and a read(2) of the group, 0.5 us or more, where it does not.
//
// Header only; needs nothing but the kernel's headers. Values are those of the thread that called
// Open, and may be read by that thread alone.
#pragma once
#include <linux/perf_event.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <initializer_list>

namespace headrace::probes::perf {

struct UserEvent {
  uint32_t type = PERF_TYPE_HARDWARE;
  uint64_t config = 0;
};

namespace user_read {

// The PMU's register `number`, as the mmap page names it minus one.
inline uint64_t ReadRegister(uint32_t number) {
#if defined(__x86_64__)
  uint32_t low, high;
  asm volatile("rdpmc" : "=a"(low), "=d"(high) : "c"(number));
  return static_cast<uint64_t>(high) << 32 | low;
#elif defined(__aarch64__)
  uint64_t value = 0;
  asm volatile("isb");
#define HR_READ(n)                                            \
  case n:                                                     \
    asm volatile("mrs %0, pmevcntr" #n "_el0" : "=r"(value)); \
    break
  switch (number) {
    case 31:
      asm volatile("mrs %0, pmccntr_el0" : "=r"(value));
      break;
      HR_READ(0);
      HR_READ(1);
      HR_READ(2);
      HR_READ(3);
      HR_READ(4);
      HR_READ(5);
      HR_READ(6);
      HR_READ(7);
      HR_READ(8);
      HR_READ(9);
      HR_READ(10);
      HR_READ(11);
      HR_READ(12);
      HR_READ(13);
      HR_READ(14);
      HR_READ(15);
      HR_READ(16);
      HR_READ(17);
      HR_READ(18);
      HR_READ(19);
      HR_READ(20);
      HR_READ(21);
      HR_READ(22);
      HR_READ(23);
      HR_READ(24);
      HR_READ(25);
      HR_READ(26);
      HR_READ(27);
      HR_READ(28);
      HR_READ(29);
      HR_READ(30);
    default:
      break;
  }
#undef HR_READ
  return value;
#else
  (void)number;
  return 0;
#endif
}

// One event by its mmap page; the kernel rewrites the page at every switch, and says so in `lock`.
// False when the page does not allow it now. `Read` replaces ReadRegister in tests.
template <typename Read>
bool ReadPage(const volatile perf_event_mmap_page* page, uint64_t* value, const Read& read) {
  for (int attempt = 0; attempt < 1000; ++attempt) {
    const uint32_t sequence = page->lock;
    asm volatile("" ::: "memory");
    const uint32_t index = page->index;
    const bool allowed = (page->capabilities & 4) != 0;  // cap_user_rdpmc
    uint64_t count = static_cast<uint64_t>(page->offset);
    if (allowed && index != 0) {
      const unsigned width = page->pmc_width;
      if (width == 0 || width > 64) return false;
      // What the register says, its sign extended from its width: it counts up to an overflow.
      const uint64_t raw = read(index - 1) << (64 - width);
      count += static_cast<uint64_t>(static_cast<int64_t>(raw) >> (64 - width));
    }
    asm volatile("" ::: "memory");
    if (page->lock != sequence) continue;
    *value = count;
    return allowed && index != 0;
  }
  return false;
}

}  // namespace user_read

// A group of at most kMost events, always on the PMU together (pinned).
class UserCounters {
 public:
  static constexpr size_t kMost = 6;

  UserCounters() = default;
  ~UserCounters() { Close(); }
  UserCounters(const UserCounters&) = delete;
  UserCounters& operator=(const UserCounters&) = delete;

  // Starts to count `events` of the calling thread, in user mode. Returns 0 or an errno.
  int Open(const UserEvent* events, size_t num_events) {
    Close();
    if (num_events == 0 || num_events > kMost) return EINVAL;
    const auto page_size = static_cast<size_t>(sysconf(_SC_PAGESIZE));
    for (size_t i = 0; i < num_events; ++i) {
      perf_event_attr attr{};
      attr.size = sizeof attr;
      attr.type = events[i].type;
      attr.config = events[i].config;
      attr.disabled = attr.pinned = i == 0;
      attr.exclude_kernel = attr.exclude_hv = 1;
      attr.read_format = PERF_FORMAT_GROUP;
      long fd = -1;
#if defined(__aarch64__)
      // 64 bit wide and readable from user space; refused while perf_user_access is 0.
      for (const uint64_t wish : {3u, 2u, 0u}) {
        attr.config1 = wish;
        fd =
            syscall(SYS_perf_event_open, &attr, 0, -1, i == 0 ? -1 : fds_[0], PERF_FLAG_FD_CLOEXEC);
        if (fd >= 0) break;
      }
#else
      fd = syscall(SYS_perf_event_open, &attr, 0, -1, i == 0 ? -1 : fds_[0], PERF_FLAG_FD_CLOEXEC);
#endif
      if (fd < 0) {
        const int error = errno;
        Close();
        return error;
      }
      fds_[num_++] = static_cast<int>(fd);
      void* page = mmap(nullptr, page_size, PROT_READ, MAP_SHARED, static_cast<int>(fd), 0);
      pages_[i] = page == MAP_FAILED ? nullptr : static_cast<perf_event_mmap_page*>(page);
    }
    if (ioctl(fds_[0], PERF_EVENT_IOC_ENABLE, PERF_IOC_FLAG_GROUP) != 0) {
      const int error = errno;
      Close();
      return error;
    }
    return 0;
  }

  // Counts since Open, in the order of the events. False if the group is not on the PMU.
  bool Read(uint64_t* values) const {
    for (size_t i = 0; i < num_; ++i) {
      if (!pages_[i] || !user_read::ReadPage(pages_[i], &values[i], user_read::ReadRegister)) {
        return ReadByCall(values);
      }
    }
    return num_ > 0;
  }

  // The same by read(2).
  bool ReadByCall(uint64_t* values) const {
    uint64_t words[1 + kMost] = {};
    if (num_ == 0) return false;
    const auto size = static_cast<ssize_t>((1 + num_) * sizeof words[0]);
    if (read(fds_[0], words, sizeof words) != size || words[0] != num_) return false;
    std::memcpy(values, words + 1, num_ * sizeof words[0]);
    return true;
  }

  // Whether Read needs no system call now.
  bool in_user_space() const {
    uint64_t value;
    for (size_t i = 0; i < num_; ++i) {
      if (!pages_[i] || !user_read::ReadPage(pages_[i], &value, user_read::ReadRegister))
        return false;
    }
    return num_ > 0;
  }
  bool is_open() const { return num_ > 0; }

  void Close() {
    const auto page_size = static_cast<size_t>(sysconf(_SC_PAGESIZE));
    for (size_t i = num_; i-- > 0;) {
      if (pages_[i]) munmap(pages_[i], page_size);
      pages_[i] = nullptr;
      close(fds_[i]);
    }
    num_ = 0;
  }

 private:
  int fds_[kMost] = {};
  perf_event_mmap_page* pages_[kMost] = {};
  size_t num_ = 0;
};

}  // namespace headrace::probes::perf
