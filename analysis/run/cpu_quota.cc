#include "analysis/run/cpu_quota.h"

#include <algorithm>

namespace headrace::analysis {
namespace {

// The metric's value of that group.
Real OfGroup(const RunView& run, const char* metric, const std::string& group) {
  for (const MeasurementRow& row : run.measurements) {
    if (row.metric == metric && row.subject == group && row.cause.empty()) return row.value;
  }
  return std::nullopt;
}

// A group above may be what stops this one: the largest share of all of them.
Real StoppedRatio(const RunView& run) {
  Real most;
  for (const MeasurementRow& row : run.measurements) {
    if (row.metric != "cgroup_throttled_count" || !row.value) continue;
    const Real periods = OfGroup(run, "cgroup_periods_count", row.subject);
    if (!periods || *periods <= 0) continue;
    most = std::max(most.value_or(0), std::min(1.0, *row.value / *periods));
  }
  return most;
}

}  // namespace

std::optional<CpuQuota> CpuQuotaOf(const RunView& run, Real cores_used) {
  constexpr double kWithin = 0.9;  // of what was used, which is a mean of other windows
  std::optional<CpuQuota> least;
  const auto consider = [&](double cores) {
    if (cores <= 0 || cores < kWithin * cores_used.value_or(0)) return;
    if (!least || cores < least->cores) least = CpuQuota{cores, StoppedRatio(run)};
  };
  for (const MeasurementRow& row : run.measurements) {
    if (row.metric == "cgroup_cpu_quota_cores" && row.value) consider(*row.value);
  }
  const std::string& bound_by = run.run.cores_bound_by;
  if (run.run.cores_count && bound_by.find("quota") != std::string::npos) {
    consider(*run.run.cores_count);
  }
  return least;
}

}  // namespace headrace::analysis
