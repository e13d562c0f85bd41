#include "analysis/run/unseen_processes.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <numeric>
#include <string_view>
#include <vector>

#include "analysis/run/counter_sums.h"
#include "analysis/thresholds.h"
#include "base/terminal_text.h"

namespace headrace::analysis {
namespace {

int64_t LifeNs(const RunView& run, const ProcessRow& process) {
  return process.ended_ns.value_or(run.run.duration_ns) - std::max<int64_t>(0, process.started_ns);
}

// A shell is there for another program.
bool IsShell(std::string_view name) {
  constexpr std::array<std::string_view, 4> kShells = {"sh", "bash", "dash", "env"};
  return std::find(kShells.begin(), kShells.end(), name) != kShells.end();
}

// The most frequent name among `ended` that no process of `lasting` has: one that has not called
// exec() yet has its parent's.
std::string NameOfMost(const std::map<std::string, int64_t>& ended,
                       const std::map<std::string, int64_t>& lasting) {
  std::string name;
  int64_t most = 0;
  for (const auto& [each, times] : ended) {
    if (lasting.contains(each) || IsShell(each) || times <= most) continue;
    name = each;
    most = times;
  }
  return name;
}

}  // namespace

std::string UnseenProcessesWithMostCpu(const RunView& run) {
  double all_s = 0;
  std::map<std::string, std::vector<double>> unseen;  // seconds, by name
  for (const ProcessRow& process : run.processes) {
    const double cpu_s = Seconds(process.cpu_ns);
    all_s += cpu_s;
    if (!process.has_accounts && 2 * LifeNs(run, process) > run.run.duration_ns) {
      unseen[process.process].push_back(cpu_s);
    }
  }
  for (const auto& [name, times] : unseen) {
    if (std::accumulate(times.begin(), times.end(), 0.0) <= kMostIsUnseen * all_s) continue;
    const double most_s = *std::max_element(times.begin(), times.end());
    const auto count = std::count_if(times.begin(), times.end(),
                                     [&](double cpu_s) { return cpu_s > kIdleWorker * most_s; });
    return fmt::format("{} {} without instrumentation",
                       count == 1 ? "process" : fmt::format("{} processes", count),
                       Printable(name, 40));
  }
  return "";
}

std::string ShortLivedProcesses(const RunView& run, double least_s) {
  std::map<std::string, int64_t> lasting, ended;  // how many, by name
  double ended_s = 0;
  int64_t count = 0, first_ns = run.run.duration_ns, last_ns = 0;
  for (const ProcessRow& process : run.processes) {
    const bool soon = process.ended_ns && static_cast<double>(LifeNs(run, process)) <
                                              kSoonEnds * static_cast<double>(run.run.duration_ns);
    if (process.has_accounts || !soon) {
      ++lasting[process.process];
      continue;
    }
    ended_s += Seconds(process.cpu_ns);
    ++count;
    ++ended[process.process];
    first_ns = std::min(first_ns, process.started_ns);
    last_ns = std::max(last_ns, process.started_ns);
  }
  const bool again = static_cast<double>(last_ns - first_ns) >
                     kSoonEnds * static_cast<double>(run.run.duration_ns);
  if (count < kManyProcesses || !again || ended_s < least_s) return "";
  const std::string name = NameOfMost(ended, lasting);
  return fmt::format("{} short-lived processes{}", count,
                     name.empty() ? "" : ", such as " + Printable(name, 40));
}

}  // namespace headrace::analysis
