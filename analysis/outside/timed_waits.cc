#include "analysis/outside/timed_waits.h"

#include <algorithm>
#include <numeric>
#include <optional>
#include <vector>

#include "analysis/outside/python_activity.h"
#include "analysis/thresholds.h"

namespace headrace::analysis {
namespace {

// Of what a thread slept, at least so much lasted the waits that others ended.
constexpr double kSomebodyEnds = 0.05;

// CPython's threads wait for the interpreter with a limit of 5 ms (Python/ceval_gil.c), wherever
// they are.
constexpr double kLongerThanForInterpreterS = 0.02;

// Whether the main threads of these processes slept that long each time.
bool SleepsLong(const RunView& run, const ProcessKind& kind) {
  double slept_ns = 0, sleeps = 0;
  for (const MeasurementRow& row : run.measurements) {
    if (row.cause != "sleep" || !row.value || !row.process_id || !IsMainThread(row.thread))
      continue;
    const std::vector<int64_t>& ids = kind.process_ids;
    if (std::find(ids.begin(), ids.end(), *row.process_id) == ids.end()) continue;
    if (row.metric == "off_cpu_ns") slept_ns += *row.value;
    if (row.metric == "off_cpu_count") sleeps += *row.value;
  }
  return sleeps > 0 && slept_ns * 1e-9 >= kLongerThanForInterpreterS * sleeps;
}

// Whether they wait in functions that wait for others, and sleep in none that sleeps.
bool OnlyWaitsForOthers(const RunView& run, const ProcessKind& kind) {
  constexpr double kHardly = 0.1;
  const std::optional<PythonActivity> seen = LookAtActivity(run, kind.process_ids);
  if (!seen || seen->samples_count < kFewestSamples) return false;
  const double waits = seen->Main(Activity::kWaitsForOthers) + seen->Main(Activity::kWaitsForRoom);
  return waits >= kThreadsAtOneThing && seen->Main(Activity::kSleeps) < kHardly * waits;
}

}  // namespace

void JoinTimedWaits(const RunView& run, const SeenThreads& seen, Slices* slices) {
  if (slices->waits.empty()) return;
  // Ray's driver waits for what its daemons do, which nobody sees.
  const bool has_services = std::any_of(seen.kinds.begin(), seen.kinds.end(),
                                        [](const ProcessKind& kind) { return kind.is_service; });
  if (has_services) return;
  for (size_t g = 0; g < seen.groups.size(); ++g) {
    const ThreadGroup& group = seen.groups[g];
    const ProcessKind& kind = seen.kinds[group.kind];
    if (!group.main || !SleepsLong(run, kind) || !OnlyWaitsForOthers(run, kind)) continue;
    std::vector<double> ended(seen.edges.size());  // seconds of its waits at locks, by edge
    double slept_s = 0;
    for (const std::vector<ThreadTimes>& times : slices->times) {
      slept_s += times[g].blocked_s[static_cast<size_t>(WaitCause::kSleep)];
    }
    for (size_t e = 0; e < seen.edges.size(); ++e) {
      const WakeEdge& edge = seen.edges[e];
      if (edge.wakee != g || !edge.waker || edge.cause != WaitCause::kLock) continue;
      for (const std::vector<double>& waits : slices->waits) ended[e] += waits[e];
    }
    const double all_s = std::accumulate(ended.begin(), ended.end(), 0.0);
    // `event.wait(0.1)` that nobody ever ends is a sleep.
    if (all_s <= kSomebodyEnds * slept_s) continue;
    for (size_t s = 0; s < slices->times.size(); ++s) {
      auto& blocked_s = slices->times[s][g].blocked_s;
      double& sleep_s = blocked_s[static_cast<size_t>(WaitCause::kSleep)];
      blocked_s[static_cast<size_t>(WaitCause::kLock)] += sleep_s;
      for (size_t e = 0; e < ended.size(); ++e) slices->waits[s][e] += sleep_s * ended[e] / all_s;
      sleep_s = 0;
    }
  }
}

}  // namespace headrace::analysis
