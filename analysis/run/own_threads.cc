#include "analysis/run/own_threads.h"

#include <map>
#include <set>

#include "analysis/thresholds.h"

namespace headrace::analysis {

std::string CauseInOwnThreads(const RunView& run, const OperatorRow& op) {
  std::set<int64_t> processes;
  double locked_ns = 0;
  for (const MeasurementRow& row : run.measurements) {
    if (row.metric != "off_cpu_ns" || row.cause != "lock" || !row.value || !row.process_id)
      continue;
    if (row.operator_name != op.name || row.stage != op.stage) continue;
    processes.insert(*row.process_id);
    locked_ns += *row.value;
  }
  if (locked_ns <= 0) return "";
  std::map<std::string, double> waits_ns;
  double on_cpu_ns = 0;
  for (const MeasurementRow& row : run.measurements) {
    if (!row.value || !row.process_id || !processes.contains(*row.process_id)) continue;
    if (!row.operator_name.empty() || row.thread.empty() || row.thread.ends_with(" (main)")) {
      continue;
    }
    if (row.metric == "off_cpu_ns") waits_ns[row.cause] += *row.value;
    if (row.metric == "on_cpu_ns") on_cpu_ns += *row.value;
  }
  for (const char* cause : {"network", "storage", "sleep"}) {
    const auto wait = waits_ns.find(cause);
    if (wait == waits_ns.end() || wait->second < kThreadsExplain * locked_ns) continue;
    if (wait->second > on_cpu_ns) return cause;
  }
  return "";
}

}  // namespace headrace::analysis
