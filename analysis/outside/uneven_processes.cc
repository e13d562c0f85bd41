#include "analysis/outside/uneven_processes.h"

#include <algorithm>
#include <map>

#include "analysis/run/uneven_workers.h"
#include "analysis/thresholds.h"

namespace headrace::analysis {

std::optional<UnevenProcesses> FindUnevenProcesses(const RunView& run, const Outside& seen,
                                                   const OutsideUnit& unit,
                                                   const std::set<int64_t>& slices,
                                                   const std::string& prefix) {
  const ProcessKind& kind = seen.kinds[unit.kind];
  if (kind.pids.size() < 2 || !seen.groups[unit.key_group].main || slices.empty()) {
    return std::nullopt;
  }
  struct Time {
    double work_s = 0, all_s = 0;
  };
  std::map<int64_t, Time> times;
  bool knows_waits = false;
  for (const int64_t id : kind.process_ids) times[id] = {};
  for (const CourseRow& row : run.course) {
    const auto process = times.find(row.process_id);
    if (process == times.end() || !slices.contains(row.slice) || !IsMainThread(row.thread)) {
      continue;
    }
    const double seconds = row.value * 1e-9;
    const bool works = row.metric == prefix + "on_cpu_ns" || row.metric == prefix + "runnable_ns";
    if (works) process->second.work_s += seconds;
    const bool waits = row.metric == prefix + "off_cpu_ns";
    if (works || waits) process->second.all_s += seconds;
    knows_waits = knows_waits || waits;
  }
  double lived_s = 0;
  for (const auto& [id, time] : times) lived_s = std::max(lived_s, time.all_s);
  const auto busiest = std::max_element(
      times.begin(), times.end(),
      [](const auto& a, const auto& b) { return a.second.work_s < b.second.work_s; });
  if (!knows_waits || busiest->second.work_s <= 0) return std::nullopt;
  UnevenProcesses uneven;
  uneven.processes = kind.pids.size();
  for (size_t i = 0; i < kind.pids.size(); ++i) {
    if (kind.process_ids[i] == busiest->first) uneven.pid = kind.pids[i];
  }
  uneven.busiest_ratio = busiest->second.work_s / lived_s;
  // One that lived shorter does not wait where it is not.
  for (const auto& [id, time] : times) {
    if (time.all_s < kLivesAsLong * lived_s) return std::nullopt;
  }
  double least = 1, second = 0;
  for (const auto& [id, time] : times) {
    if (id == busiest->first) continue;
    const double ratio = time.work_s / lived_s;
    uneven.others_ratio += ratio / static_cast<double>(times.size() - 1);
    least = std::min(least, ratio);
    second = std::max(second, ratio);
  }
  // One that does nothing is another loader's, of an evaluation say.
  if (uneven.busiest_ratio < kWorksAllTheTime || least < kTakesPart ||
      second > kOthersMostlyWait * uneven.busiest_ratio) {
    return std::nullopt;
  }
  return uneven;
}

size_t CountIdleProcesses(const RunView& run, const ProcessKind& kind) {
  if (!kind.name.starts_with("pt_data_worker")) return 0;
  const ProcessRow* busiest = nullptr;
  for (const ProcessRow& process : run.processes) {
    const bool is_of_kind = std::find(kind.process_ids.begin(), kind.process_ids.end(),
                                      process.process_id) != kind.process_ids.end();
    if (is_of_kind && (busiest == nullptr || process.cpu_ns > busiest->cpu_ns)) busiest = &process;
  }
  return busiest != nullptr ? CountIdleBeside(run, {busiest->pid}, true) : 0;
}

}  // namespace headrace::analysis
