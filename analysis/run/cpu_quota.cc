#include "analysis/run/cpu_quota.h"

#include <algorithm>
#include <string>
#include <vector>

#include "analysis/run/control_groups.h"
#include "analysis/thresholds.h"

namespace headrace::analysis {
namespace {

constexpr double kRounding = 1e-6;

// The metric's value of that group.
Real OfGroup(const RunView& run, const char* metric, const std::string& group) {
  for (const MeasurementRow& row : run.measurements) {
    if (row.metric == metric && row.subject == group && row.cause.empty()) return row.value;
  }
  return std::nullopt;
}

Real StoppedRatio(const RunView& run, const std::string& group) {
  const Real periods = OfGroup(run, "cgroup_periods_count", group);
  const Real stopped = OfGroup(run, "cgroup_throttled_count", group);
  if (!periods || !stopped || *periods <= 0) return std::nullopt;
  return std::min(1.0, *stopped / *periods);
}

}  // namespace

std::optional<CpuQuota> CpuQuotaOf(const RunView& run, Real cores_used) {
  const auto possible = [&](double cores) {
    return cores > 0 && cores >= kQuotaPossible * cores_used.value_or(0);
  };
  const MeasurementRow* least = nullptr;
  std::vector<std::string> groups;
  for (const MeasurementRow& row : run.measurements) {
    if (row.metric != "cgroup_cpu_quota_cores" || !row.value || !possible(*row.value)) continue;
    groups.push_back(row.subject);
    if (least == nullptr || *row.value < *least->value) least = &row;
  }
  std::optional<CpuQuota> quota;
  if (least != nullptr && EachWithinTheOther(groups)) {
    quota = CpuQuota{*least->value, StoppedRatio(run, least->subject)};
  }
  // The same quota, but for rounding, tells here how often it stopped the run.
  const bool started_with = run.run.cores_bound_by.find("quota") != std::string::npos;
  if (started_with && run.run.cores_count && possible(*run.run.cores_count) &&
      (!quota || *run.run.cores_count < quota->cores * (1 - kRounding))) {
    quota = CpuQuota{*run.run.cores_count, std::nullopt};
  }
  return quota;
}

CoreBudget CoreBudgetOf(const RunView& run, Real cores_used) {
  CoreBudget budget{run.run.cores_count, run.run.cores_bound_by, std::nullopt};
  const std::optional<CpuQuota> quota = CpuQuotaOf(run, cores_used);
  const bool by_quota = budget.bound_by.find("quota") != std::string::npos;
  if (!quota) return budget;
  // A mean of equal readings may differ from them in its last digit.
  const double ratio = budget.cores ? quota->cores / *budget.cores : 0;
  if (ratio > 1 + kRounding || (ratio > 1 - kRounding && !by_quota)) return budget;
  return {quota->cores, by_quota ? budget.bound_by : "CPU quota", quota};
}

}  // namespace headrace::analysis
