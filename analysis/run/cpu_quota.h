// The CPU quota of the control groups that a run's processes are in: the cores that they get at
// most, however many are idle.
#pragma once
#include <optional>
#include <string>

#include "analysis/run/run_view.h"

namespace headrace::analysis {

struct CpuQuota {
  double cores = 0;
  // Share of the quota's periods in which it was used up and the kernel stopped the group until the
  // next one began; none: not recorded.
  Real stopped_ratio;
};

// The least of the recorded quotas, of cgroup v1 and v2; else the core budget that the run was
// started with, where a quota made it. A quota of less than what the processes used is another
// one's: of one of several groups. Groups of which none lies within the other are not
// considered, as their quotas add up. Empty: there is none.
std::optional<CpuQuota> CpuQuotaOf(const RunView& run, Real cores_used);

// How many cores the run's processes could use, and what bounds that.
struct CoreBudget {
  Real cores;  // none: not recorded
  std::string bound_by;
  std::optional<CpuQuota> quota;  // where that is the bound
};
// What the run was started with, or a quota that gives less.
CoreBudget CoreBudgetOf(const RunView& run, Real cores_used);

}  // namespace headrace::analysis
