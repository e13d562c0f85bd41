#include "analysis/run/own_threads.h"

#include <algorithm>
#include <map>
#include <set>
#include <string_view>

#include "analysis/thresholds.h"

namespace headrace::analysis {
namespace {

constexpr std::string_view kMain = " (main)";

}  // namespace

std::string CauseInOwnThreads(const RunView& run, const OperatorRow& op) {
  std::map<int64_t, int64_t> processes;  // in which it waits at locks: id, pid
  double locked_ns = 0;
  for (const MeasurementRow& row : run.measurements) {
    if (row.metric != "off_cpu_ns" || row.cause != "lock" || !row.value || !row.process_id)
      continue;
    if (row.operator_name != op.name || row.stage != op.stage) continue;
    processes.emplace(*row.process_id, row.pid);
    locked_ns += *row.value;
  }
  if (locked_ns <= 0) return "";
  std::set<std::string> wakers;  // threads of those processes that end waits at locks
  for (const MeasurementRow& row : run.measurements) {
    if (row.metric != "wakeups_count" || row.cause != "lock" || !row.process_id) continue;
    const auto process = processes.find(*row.process_id);
    if (process == processes.end() || !row.thread.ends_with(kMain)) continue;
    const std::string prefix = std::to_string(process->second) + "/";
    if (row.subject.starts_with(prefix)) wakers.insert(row.subject.substr(prefix.size()));
  }
  std::map<std::string, double> times_ns;  // of these threads, by cause
  for (const MeasurementRow& row : run.measurements) {
    if (!row.value || !row.process_id || !processes.contains(*row.process_id)) continue;
    if (!row.operator_name.empty() || !wakers.contains(row.thread)) continue;
    if (row.metric == "off_cpu_ns") times_ns[row.cause] += *row.value;
    if (row.metric == "on_cpu_ns") times_ns["cpu"] += *row.value;
  }
  if (times_ns.empty()) return "";
  const auto most =
      *std::max_element(times_ns.begin(), times_ns.end(),
                        [](const auto& a, const auto& b) { return a.second < b.second; });
  const bool explains = most.first == "network" || most.first == "storage";
  return explains && most.second >= kThreadsExplain * locked_ns ? most.first : "";
}

}  // namespace headrace::analysis
