#include "dashboards/report/losses.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "base/units.h"

namespace headrace::dashboards {
namespace {

// The first row whose parts are both in the name is meant. Names of the kernel programs' losses
// begin with the program: "offcpu: wakeups".
struct Effect {
  std::string_view program;  // the name begins with it
  std::string_view what;     // and contains this
  std::string_view affected;
};
constexpr Effect kEffects[] = {
    {"offcpu: ", "wakeups", "who feeds whom (Threads): links missing or too weak"},
    {"offcpu: ", "run queue", "run-queue latency: too few waits"},
    {"offcpu: ", "thread times", "CPU time by thread (Threads): too low"},
    {"offcpu: ", "",
     "where each operator's time goes, and Threads: b and q too low, c too high; causes "
     "incomplete"},
    {"follow: ", "processes", "children of the target: their figures by eBPF missing"},
    {"follow: ", "", "all figures by eBPF of threads there was no room for: missing"},
    {"off_cpu_stack: ", "copies", "off-CPU stacks: more of them truncated"},
    {"off_cpu_stack: ", "", "off-CPU stacks: too little time, or stacks without names"},
    {"cpu_stack: ", "copies", "CPU stacks: more of them truncated"},
    {"cpu_stack: ", "", "CPU stacks: too few samples, or stacks without names"},
    {"", "off_cpu stacks", "off-CPU stacks: rare ones not separated"},
    {"", "cpu stacks", "CPU stacks: rare ones not separated"},
    {"", "cpu stack samples", "CPU stacks: too few samples"},
    {"block_io: ", "histogram", "histograms of block requests: too low"},
    {"block_io: ", "completions", "block IO: latencies of those requests missing"},
    {"block_io: ", "", "block IO by operator and device: too low"},
    {"file_io: ", "", "page cache and read-ahead by operator: too low"},
    {"file_call: ", "", "calls that read files, by operator: too low"},
    {"io_uring: ", "", "io_uring reads by operator: too low"},
    {"socket: ", "softirqs", "softirq time: too low"},
    {"socket: ", "", "network by socket and operator: too low"},
    {"connect: ", "", "TCP connections opened, by operator: too few"},
    {"fault: ", "", "page faults by operator: too low"},
    {"throttle: ", "", "time lost to memory reclaim, by operator: too low"},
    {"counters: ", "", "hardware counters by operator: too low"},
    {"", "beyond the limit of open files", "hardware counters: threads missing"},
    {"", "may not be counted", "hardware counters: threads missing"},
    {"", "place on the PMU", "hardware counters: intervals missing"},
    {"", "block completions", "block IO: latencies of those requests missing"},
    {"", "step", "percentiles of step times: from the steps kept"},
    {"", "fork events", "Processes: short-lived ones missing"},
    {"", "processes over the limit", "Processes: some missing, their figures are the root's"},
    {"", "links were not read", "who feeds whom (Threads): links missing"},
    {"", "waits were not sampled", "Threads: causes of waiting incomplete"},
    {"", "courses of measurements", "course over time of some figures: their totals only"},
    {"", "courses of threads", "when some threads ran and waited: their totals only"},
    {"", "stacks", "stacks: some missing"},
    {"", "measurements", "figures beyond the limit of a run: missing"},
    {"", "ring", "detail around stalls: shorter than asked"},
    {"", "ranges of detail", "detail around stalls: the oldest ranges given up"},
    {"", "over the limit", "operators, queues and resources beyond the limit: not listed"},
};

constexpr std::string_view kOther = "figures made of them: too low";

}  // namespace

std::string_view AffectedBy(std::string_view what) {
  for (const Effect& effect : kEffects) {
    if (what.starts_with(effect.program) && what.find(effect.what) != std::string_view::npos) {
      return effect.affected;
    }
  }
  return kOther;
}

bool IsTotal(const analysis::LossRow& loss) {
  return loss.total_count && *loss.total_count > 0 && loss.lost_count <= *loss.total_count;
}

std::vector<std::string> LossLines(const std::vector<analysis::LossRow>& losses) {
  struct Group {
    int64_t lost = 0;
    std::string list;
  };
  std::map<std::string_view, Group> groups;
  for (const analysis::LossRow& loss : losses) {
    if (loss.lost_count <= 0) continue;
    Group& group = groups[AffectedBy(loss.what)];
    group.lost += loss.lost_count;
    std::string_view what = loss.what;
    if (const size_t colon = what.find(": "); colon != std::string_view::npos) {
      what.remove_prefix(colon + 2);
    }
    if (!group.list.empty()) group.list += ", ";
    group.list += fmt::format("{} {}", loss.lost_count, what);
    if (IsTotal(loss)) {
      group.list += fmt::format(" of {} ({})", *loss.total_count,
                                FormatPercent(static_cast<double>(loss.lost_count) /
                                              static_cast<double>(*loss.total_count)));
    }
  }
  std::vector<std::pair<std::string_view, Group>> ordered(groups.begin(), groups.end());
  std::stable_sort(ordered.begin(), ordered.end(),
                   [](const auto& a, const auto& b) { return a.second.lost > b.second.lost; });
  std::vector<std::string> lines;
  for (const auto& [affected, group] : ordered) {
    lines.push_back(fmt::format("{} (lost: {})", affected, group.list));
  }
  return lines;
}

}  // namespace headrace::dashboards
