#include "analysis/outside/timed_waits.h"

#include <algorithm>
#include <numeric>
#include <optional>
#include <vector>

#include "analysis/outside/python_activity.h"
#include "analysis/run/python_frames.h"
#include "analysis/thresholds.h"
#include "base/library_processes.h"

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
    if (row.cause != "sleep" || !row.value || !row.process_id || !IsMainThread(row.thread)) {
      continue;
    }
    const std::vector<int64_t>& ids = kind.process_ids;
    if (std::find(ids.begin(), ids.end(), *row.process_id) == ids.end()) continue;
    if (row.metric == "off_cpu_ns") slept_ns += *row.value;
    if (row.metric == "off_cpu_count") sleeps += *row.value;
  }
  return sleeps > 0 && slept_ns * 1e-9 >= kLongerThanForInterpreterS * sleeps;
}

// `while not stop.wait(0.1)`: a program's pace, that nobody is asked for.
bool IsPaced(const std::vector<PythonFrame>& frames) {
  const auto wait = std::find_if(frames.begin(), frames.end(), [](const PythonFrame& frame) {
    return frame.function == "Event.wait" && IsIn(frame, "threading.py");
  });
  return wait != frames.begin() && wait != frames.end() && (wait - 1)->is_own;
}

// The share of their time in which main threads of these processes wait for others, by samples.
// Nothing where that is not most of it, or where they sleep beside that.
std::optional<double> WaitsForOthers(const RunView& run, const ProcessKind& kind) {
  constexpr double kHardly = 0.1;
  double all_s = 0, waits_s = 0, sleeps_s = 0;
  int64_t samples_count = 0;
  for (const StackRow& stack : run.stacks) {
    const std::vector<int64_t>& ids = kind.process_ids;
    if (stack.kind != "python" || stack.thread != "MainThread" || !stack.process_id) continue;
    if (std::find(ids.begin(), ids.end(), *stack.process_id) == ids.end()) continue;
    const std::vector<PythonFrame> frames = FramesOf(stack.folded);
    if (frames.empty() || IsImport(frames)) continue;
    const double seconds = static_cast<double>(stack.time_ns) * 1e-9;
    const Activity activity = ActivityOf(frames);
    all_s += seconds;
    samples_count += stack.samples_count;
    if (activity == Activity::kSleeps || IsPaced(frames)) {
      sleeps_s += seconds;
    } else if (activity == Activity::kWaitsForOthers || activity == Activity::kWaitsForRoom) {
      waits_s += seconds;
    }
  }
  if (samples_count < kFewestSamples || waits_s < kThreadsAtOneThing * all_s) return std::nullopt;
  return sleeps_s < kHardly * waits_s ? std::optional(waits_s / all_s) : std::nullopt;
}

// Seconds of the group's waits at locks, by edge, without those that are as short as waits for the
// interpreter.
std::vector<double> EndedByOthers(const SeenThreads& seen, const Slices& slices, size_t group) {
  std::vector<double> ended(seen.edges.size());
  for (size_t e = 0; e < seen.edges.size(); ++e) {
    const WakeEdge& edge = seen.edges[e];
    if (edge.wakee != group || !edge.waker || edge.cause != WaitCause::kLock) continue;
    double waits_s = 0, count = 0;
    for (size_t s = 0; s < slices.waits.size(); ++s) {
      waits_s += slices.waits[s][e];
      count += slices.counts[s][e];
    }
    if (waits_s >= kLongerThanForInterpreterS * count) ended[e] = waits_s;
  }
  return ended;
}

}  // namespace

void JoinTimedWaits(const RunView& run, const SeenThreads& seen, Slices* slices) {
  if (slices->waits.empty()) return;
  // Ray's driver waits for what its daemons do, which nobody sees.
  const bool is_ray = std::any_of(seen.kinds.begin(), seen.kinds.end(),
                                  [](const ProcessKind& kind) { return IsOfRay(kind.name); });
  if (is_ray) return;
  std::vector<size_t> drawn(slices->times.size());
  std::iota(drawn.begin(), drawn.end(), 0);
  const Totals totals = Sum(seen, *slices, drawn);
  for (size_t g = 0; g < seen.groups.size(); ++g) {
    const ProcessKind& kind = seen.kinds[seen.groups[g].kind];
    if (!seen.groups[g].main || !SleepsLong(run, kind)) continue;
    const std::optional<double> waits = WaitsForOthers(run, kind);
    if (!waits) continue;
    const ThreadTimes& all = totals.times[g];
    const double slept_s = all.blocked_s[Index(WaitCause::kSleep)];
    const std::vector<double> ended = EndedByOthers(seen, *slices, g);
    const double ended_s = std::accumulate(ended.begin(), ended.end(), 0.0);
    if (slept_s <= 0 || ended_s <= kSomebodyEnds * slept_s) continue;
    // What samples show beside the waits that the kernel knows already.
    const double part = std::clamp(
        (*waits * all.total() - all.blocked_s[Index(WaitCause::kLock)]) / slept_s, 0.0, 1.0);
    for (size_t s = 0; s < slices->times.size(); ++s) {
      auto& blocked_s = slices->times[s][g].blocked_s;
      const double moved_s = part * blocked_s[Index(WaitCause::kSleep)];
      blocked_s[Index(WaitCause::kSleep)] -= moved_s;
      blocked_s[Index(WaitCause::kLock)] += moved_s;
      for (size_t e = 0; e < ended.size(); ++e) {
        slices->waits[s][e] += moved_s * ended[e] / ended_s;
      }
    }
  }
}

}  // namespace headrace::analysis
