#include "analysis/run/control_groups.h"

#include <algorithm>

namespace headrace::analysis {
namespace {

bool IsWithin(const std::string& group, const std::string& above) {
  if (above == "/" || group == above) return true;
  return group.starts_with(above) && group[above.size()] == '/';
}

}  // namespace

bool EachWithinTheOther(std::vector<std::string> groups) {
  std::sort(groups.begin(), groups.end(),
            [](const auto& a, const auto& b) { return a.size() < b.size(); });
  for (size_t i = 1; i < groups.size(); ++i) {
    if (!IsWithin(groups[i], groups[i - 1])) return false;
  }
  return true;
}

Real MemoryOfGroups(const RunView& run) {
  Real least;
  std::vector<std::string> groups;
  for (const MeasurementRow& row : run.measurements) {
    if (row.metric != "cgroup_memory_limit_bytes" && row.metric != "cgroup_memory_high_bytes") {
      continue;
    }
    if (row.last_value.value_or(0) <= 0) continue;
    groups.push_back(row.subject);
    if (!least || *row.last_value < *least) least = row.last_value;
  }
  return EachWithinTheOther(std::move(groups)) ? least : std::nullopt;
}

void LowerToGroups(RunView* run) {
  const Real limit = MemoryOfGroups(*run);
  if (!limit) return;
  const auto bytes = static_cast<int64_t>(*limit);
  if (run->run.memory_bytes && *run->run.memory_bytes <= bytes) return;
  run->run.memory_bytes = bytes;
  run->run.memory_bound_by = "cgroup limit";
}

}  // namespace headrace::analysis
