#include "probes/host/process_age.h"

#include <time.h>
#include <unistd.h>

#include "probes/process.h"

namespace headrace::probes {

void ProcessAge::Begin(const Host& host) {
  timespec now;
  if (!host.is_this_machine() || clock_gettime(CLOCK_BOOTTIME, &now) != 0) return;
  const int64_t ticks = sysconf(_SC_CLK_TCK);
  begin_ticks_ = int64_t{now.tv_sec} * ticks + now.tv_nsec * ticks / 1'000'000'000;
}

bool ProcessAge::IsOlder(const Host& host, int64_t pid) const {
  const auto stat = ReadProcessStat(pid, host.Path("/proc"));
  return stat && stat->start_ticks < begin_ticks_;
}

}  // namespace headrace::probes
