#include "base/clock.h"

#include <cerrno>
#include <ctime>

namespace headrace {
namespace {

int64_t Read(clockid_t id) {
  timespec t;
  clock_gettime(id, &t);
  return int64_t{t.tv_sec} * 1'000'000'000 + t.tv_nsec;
}

}  // namespace

int64_t MonotonicNs() { return Read(CLOCK_MONOTONIC); }
int64_t RealtimeNs() { return Read(CLOCK_REALTIME); }
int64_t ThreadCpuNs() { return Read(CLOCK_THREAD_CPUTIME_ID); }
int64_t ProcessCpuNs() { return Read(CLOCK_PROCESS_CPUTIME_ID); }

void SleepUntilNs(int64_t deadline_ns) {
  const timespec t{static_cast<time_t>(deadline_ns / 1'000'000'000),
                   static_cast<long>(deadline_ns % 1'000'000'000)};
  while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, nullptr) == EINTR) {
  }
}

}  // namespace headrace
