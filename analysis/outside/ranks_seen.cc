#include "analysis/outside/ranks_seen.h"

#include <algorithm>
#include <map>
#include <set>

#include "analysis/outside/slices.h"
#include "analysis/thresholds.h"

namespace headrace::analysis {
namespace {

// Seconds of the main thread of each of these processes, and those in which it waited until a
// thread that exchanges gradients ended it.
struct RankTime {
  double lived_s = 0, waits_s = 0;
  double wait_ratio() const { return lived_s > 0 ? waits_s / lived_s : 0; }
};

// Whether the row is a wait that a thread which exchanges gradients ended.
bool IsEndedByRank(const CourseRow& row) {
  const size_t slash = row.subject.find('/');
  return row.metric == "wakeup_wait_ns" && slash != std::string::npos &&
         IsOfRanks(std::string_view(row.subject).substr(slash + 1));
}

// By process_id, of those that have threads to exchange gradients; from the first exchange of all
// on. Before that a rank loads its modules and its model, or waits for one that does.
std::map<int64_t, RankTime> TimesOfRanks(const RunView& run) {
  std::map<int64_t, RankTime> times;
  std::map<int64_t, int64_t> first;  // slice, by process_id
  for (const CourseRow& row : run.course) {
    if (IsOfRanks(row.thread)) times[row.process_id] = {};
    if (!IsMainThread(row.thread) || !IsEndedByRank(row)) continue;
    const auto at = first.try_emplace(row.process_id, row.slice).first;
    at->second = std::min(at->second, row.slice);
  }
  if (times.size() < 2) return {};
  int64_t begin = -1;  // slice in which the last of the first waits ended, however long it was
  for (const auto& [id, slice] : first) begin = std::max(begin, slice);
  for (const CourseRow& row : run.course) {
    const auto of = times.find(row.process_id);
    if (of == times.end() || !IsMainThread(row.thread)) continue;
    if (row.slice <= begin) continue;
    const double seconds = row.value * 1e-9;
    if (row.metric == "on_cpu_ns" || row.metric == "runnable_ns" || row.metric == "off_cpu_ns") {
      of->second.lived_s += seconds;
    } else if (IsEndedByRank(row)) {
      of->second.waits_s += seconds;
    }
  }
  return times;
}

}  // namespace

std::optional<RanksSeen> FindRanks(const RunView& run) {
  const std::map<int64_t, RankTime> times = TimesOfRanks(run);
  RanksSeen ranks;
  RankSeen& seen = ranks.seen;
  std::string name;
  for (const ProcessRow& process : run.processes) {
    const auto of = times.find(process.process_id);
    if (of == times.end() || of->second.lived_s <= 0) continue;
    // A trainer and a server of its model may both have such threads.
    if (!name.empty() && process.process != name) return std::nullopt;
    name = process.process;
    const double wait_ratio = of->second.wait_ratio();
    ranks.pids.push_back(process.pid);
    seen.others_wait_ratio = std::max(seen.others_wait_ratio, wait_ratio);
    if (seen.pid != 0 && wait_ratio >= seen.wait_ratio) continue;
    seen.wait_ratio = wait_ratio;
    seen.pid = process.pid;
  }
  seen.ranks = ranks.pids.size();
  // Who spins until the others come, as NCCL's ranks do, shows no wait.
  if (seen.ranks < 2 || seen.others_wait_ratio < kSmallStall) return std::nullopt;
  seen.is_slowest = seen.others_wait_ratio - seen.wait_ratio > kSmallStall;
  return ranks;
}

std::optional<double> ExchangeRatio(const RanksSeen& ranks) {
  return ranks.seen.is_slowest ? std::nullopt : std::optional(ranks.seen.wait_ratio);
}

RunView OfOneRank(const RunView& run, const std::vector<int64_t>& ranks, int64_t pid) {
  std::set<int64_t> left_out(ranks.begin(), ranks.end());
  left_out.erase(pid);
  for (bool grown = true; grown;) {
    grown = false;
    for (const ProcessRow& process : run.processes) {
      if (process.pid == pid) continue;  // other ranks may have started it
      if (left_out.contains(process.parent_pid)) grown |= left_out.insert(process.pid).second;
    }
  }
  RunView part = run;
  std::set<int64_t> ids;
  std::erase_if(part.processes, [&](const ProcessRow& process) {
    return left_out.contains(process.pid) && ids.insert(process.process_id).second;
  });
  std::erase_if(part.course, [&](const CourseRow& row) { return ids.contains(row.process_id); });
  std::erase_if(part.measurements, [&](const MeasurementRow& row) {
    return row.process_id && ids.contains(*row.process_id);
  });
  return part;
}

}  // namespace headrace::analysis
