#include "analysis/outside/lost_share.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <set>
#include <utility>

namespace headrace::analysis {

LostShare ShareLost(const RunView& run) {
  // A loss counts events; so does the metric, in which an event is seen so many times.
  struct Counted {
    const char *loss, *metric;
    double events;
    const char* words;
  };
  constexpr Counted kCounted[] = {
      {"offcpu: threads", "switches_count", 2, "the threads' switches"},  // out and in
      {"offcpu: switches", "switches_count", 1, "the threads' switches"},
      {"offcpu: off cpu periods", "runnable_count", 1, "the times off the CPU"},
      {"offcpu: wakeups", "wakeups_count", 1, "the wake-ups"}};
  std::map<std::string, double> seen;
  std::set<int64_t> processes;
  std::set<std::pair<int64_t, std::string>> groups;
  for (const MeasurementRow& row : run.measurements) {
    seen[row.metric] += row.value.value_or(0);
    if (row.metric != "on_cpu_ns") continue;
    processes.insert(row.pid);
    groups.emplace(row.pid, row.thread);
  }
  LostShare most;
  const auto consider = [&](double lost, double kept, const char* words) {
    if (lost <= 0) return;
    const double share = lost / (lost + std::max(0.0, kept));
    if (share > most.share) most = {share, words};
  };
  // Of some threads only totals are kept where there are very many.
  double in_course = 0, in_all = 0;
  for (const CourseRow& row : run.course) {
    if (row.metric == "on_cpu_ns") in_course += row.value;
  }
  for (const MeasurementRow& row : run.measurements) {
    if (row.metric == "on_cpu_ns" && row.process_id && row.operator_name.empty())
      in_all += row.value.value_or(0);
  }
  constexpr double kRounding = 0.01;
  if (in_course < (1 - kRounding) * in_all) {
    consider(in_all - in_course, in_course, "the threads' times");
  }
  for (const LossRow& loss : run.losses) {
    const auto lost = static_cast<double>(loss.lost_count);
    for (const Counted& each : kCounted) {
      if (loss.what == each.loss) consider(lost, each.events * seen[each.metric], each.words);
    }
    if (loss.what == "follow: processes") {
      consider(lost, static_cast<double>(processes.size()), "the processes");
    } else if (loss.what == "offcpu: thread times") {
      consider(lost, static_cast<double>(groups.size()), "the ended threads");
    } else if (loss.what == "threads whose waits were not sampled" && loss.total_count) {
      const auto total = static_cast<double>(*loss.total_count);
      consider(lost, total - lost, "the threads");
    }
  }
  return most;
}

}  // namespace headrace::analysis
