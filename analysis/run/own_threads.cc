#include "analysis/run/own_threads.h"

#include <algorithm>
#include <map>
#include <set>
#include <string_view>

#include "analysis/thresholds.h"

namespace headrace::analysis {
namespace {

constexpr std::string_view kMain = " (main)";

// A wait with a time limit that nobody ends counts as sleep.
bool MayBeForThreads(const std::string& cause) { return cause == "lock" || cause == "sleep"; }

// A wait for a socket with a time limit is one in poll().
std::string CauseOf(const RunView& run, const MeasurementRow& row) {
  if (row.cause != "poll") return row.cause;
  return ReceivesAllTheTime(run, *row.process_id) ? "network" : row.cause;
}

}  // namespace

bool ReceivesAllTheTime(const RunView& run, int64_t process_id) {
  const auto received = run.receiving_ns.find(process_id);
  if (received == run.receiving_ns.end()) return false;
  int64_t there_ns = run.run.duration_ns;
  for (const ProcessRow& process : run.processes) {
    if (process.process_id != process_id) continue;
    const int64_t end_ns = std::min(there_ns, process.ended_ns.value_or(there_ns));
    there_ns = end_ns - std::max<int64_t>(0, process.started_ns);
    break;
  }
  return there_ns > 0 &&
         static_cast<double>(received->second) > kReceives * static_cast<double>(there_ns);
}

std::string CauseInOwnThreads(const RunView& run, const OperatorRow& op) {
  std::map<int64_t, int64_t> processes;  // in which it waits for threads: id, pid
  double locked_ns = 0, slept_ns = 0;
  for (const MeasurementRow& row : run.measurements) {
    if (row.metric != "off_cpu_ns" || !row.value || !row.process_id) continue;
    if (!MayBeForThreads(row.cause)) continue;
    if (row.operator_name != op.name || row.stage != op.stage) continue;
    processes.emplace(*row.process_id, row.pid);
    locked_ns += *row.value;
    if (row.cause == "sleep") slept_ns += *row.value;
  }
  if (locked_ns <= 0 || locked_ns - slept_ns < kLocksWorthIt * locked_ns) return "";
  // Threads of those processes that end waits at locks, and how many each.
  std::map<std::string, double> wakers;
  double wakeups = 0;
  for (const MeasurementRow& row : run.measurements) {
    if (row.metric != "wakeups_count" || row.cause != "lock" || !row.process_id) continue;
    const auto process = processes.find(*row.process_id);
    if (process == processes.end() || !row.thread.ends_with(kMain)) continue;
    const std::string prefix = std::to_string(process->second) + "/";
    if (!row.subject.starts_with(prefix)) continue;
    wakers[row.subject.substr(prefix.size())] += row.value.value_or(0);
    wakeups += row.value.value_or(0);
  }
  std::map<std::string, double> times_ns;  // of these threads, by cause
  double sleeps = 0, slept_by_them_ns = 0;
  for (const MeasurementRow& row : run.measurements) {
    if (!row.value || !row.process_id || !processes.contains(*row.process_id)) continue;
    if (!row.operator_name.empty() || !wakers.contains(row.thread)) continue;
    // Beside one whose work takes longer than a wait's time limit, others are idle, not at a lock.
    const bool is_idle = row.cause == "lock" && slept_ns > locked_ns / 2;
    // Another that computes, or polls sockets as Ray's run-time does all the time, but rarely ends
    // such a wait, is not what it waits for.
    const bool often = wakers.at(row.thread) >= kEndsWaitsOften * wakeups;
    const std::string cause = CauseOf(run, row);
    const bool counts = often || cause == row.cause;
    if (row.metric == "off_cpu_ns" && !is_idle && counts) times_ns[cause] += *row.value;
    if (row.metric == "on_cpu_ns" && often) times_ns["cpu"] += *row.value;
    if (!often || row.cause != "sleep") continue;
    if (row.metric == "off_cpu_count") sleeps += *row.value;
    if (row.metric == "off_cpu_ns") slept_by_them_ns += *row.value;
  }
  if (times_ns.empty()) return "";
  const auto most =
      *std::max_element(times_ns.begin(), times_ns.end(),
                        [](const auto& a, const auto& b) { return a.second < b.second; });
  const bool explains = most.first == "network" || most.first == "storage";
  if (explains && most.second >= kThreadsExplain * locked_ns) return most.first;
  // Threads of a pool that have nothing to do wait at locks, too.
  if (times_ns["cpu"] >= kThreadsExplain * locked_ns) return "cpu";
  // One that only looks after the others sleeps long, and seldom.
  const double slept = slept_by_them_ns / locked_ns;
  const bool as_long = slept >= kThreadsExplain && slept < 1 / kThreadsExplain;
  const bool sleep_often = sleeps * 1e9 > kSleepsOften * slept_by_them_ns;
  return as_long && sleep_often && slept_ns < locked_ns / 2 ? "sleep" : "";
}

}  // namespace headrace::analysis
