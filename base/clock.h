// Clocks. MonotonicNs is the time base of everything stored; Tsc is the cheap clock of the
// accounts.
#pragma once
#include <cstdint>

namespace headrace {

int64_t MonotonicNs();   // CLOCK_MONOTONIC
int64_t RealtimeNs();    // CLOCK_REALTIME, nanoseconds since 1970
int64_t ThreadCpuNs();   // CLOCK_THREAD_CPUTIME_ID of the calling thread; about 0.3 us
int64_t ProcessCpuNs();  // CLOCK_PROCESS_CPUTIME_ID

// Sleeps until MonotonicNs() >= deadline_ns; goes on after signals.
void SleepUntilNs(int64_t deadline_ns);

}  // namespace headrace
