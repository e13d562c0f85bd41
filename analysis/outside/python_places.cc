#include "analysis/outside/python_places.h"

#include <algorithm>
#include <array>
#include <iterator>
#include <set>
#include <string_view>
#include <vector>

#include "analysis/outside/python_time.h"
#include "analysis/outside/threads.h"
#include "analysis/thresholds.h"
#include "base/starts_with_any.h"

namespace headrace::analysis {
namespace {

// A function of the hook calls what an operator does; "": what the operator is named after.
struct Caller {
  std::string_view function, operator_name;
};
constexpr Caller kCallers[] = {{"_MapItems.__getitem__", "getitem"},
                               {"_MapItems.__getitems__", "getitem"},
                               {"_MapItemLists.__getitems__", "getitem"},
                               {"_Items.__next__", "next"},
                               {"_Collate.__call__", "collate"},
                               {"_WorkerInit.__call__", "worker_init"},
                               {"_Call.__call__", ""}};

bool IsOfHook(const PythonFrame& frame) { return frame.file.starts_with("headrace/"); }

// "Patches.load" and "load" are functions that an operator "load" may be named after.
bool IsNamed(std::string_view function, std::string_view name) {
  if (!function.ends_with(name)) return false;
  function.remove_suffix(name.size());
  return function.empty() || function.back() == '.';
}

// Where the frames are in that operator: behind the last function of the hook; 0: in another.
size_t FirstIn(const std::vector<PythonFrame>& frames, const OperatorRow& op) {
  const auto hook = std::find_if(frames.rbegin(), frames.rend(), IsOfHook);
  if (hook == frames.rend() || hook == frames.rbegin()) return 0;
  const auto first = hook.base();  // what the hook called
  const bool calls = std::any_of(std::begin(kCallers), std::end(kCallers), [&](const Caller& each) {
    if (hook->function != each.function) return false;
    return each.operator_name.empty() ? IsNamed(first->function, op.name)
                                      : op.name == each.operator_name;
  });
  return calls ? static_cast<size_t>(first - frames.begin()) : 0;
}

// tf.data's threads call functions of the program (tf.py_function, tf.numpy_function, generators).
bool IsCalledByTensorflow(const std::vector<PythonFrame>& frames) {
  return std::any_of(frames.begin(), frames.end(), [](const PythonFrame& frame) {
    return frame.file.ends_with("tensorflow/python/ops/script_ops.py");
  });
}

// The function that tf.data calls for most of the operator's time: then it is this operator that
// calls it, if it is the busiest of all. Which of several calls it is not known.
std::optional<PythonPlace> PlaceInTfData(const RunView& run, const OperatorRow& op) {
  constexpr double kMostOfItsTime = 0.5;
  const bool is_busiest =
      std::none_of(run.operators.begin(), run.operators.end(), [&](const OperatorRow& other) {
        return other.stage.starts_with("tf.data") && other.busy_ns > op.busy_ns;
      });
  if (!is_busiest) return std::nullopt;
  PythonLines lines;
  double called_s = 0;
  for (const StackRow& stack : run.stacks) {
    if (stack.kind != "python") continue;
    const std::vector<PythonFrame> frames = FramesOf(stack.folded);
    if (!IsCalledByTensorflow(frames)) continue;
    const double seconds = static_cast<double>(stack.time_ns) * 1e-9;
    lines.Add(InnermostOwn(frames, 0), seconds);
    called_s += seconds;
  }
  std::optional<PythonPlace> place = lines.Busiest();
  if (!place || op.busy_ns <= 0) return std::nullopt;
  place->ratio *= std::min(1.0, called_s / (static_cast<double>(op.busy_ns) * 1e-9));
  return place->ratio >= kMostOfItsTime ? place : std::nullopt;
}

bool IsOfTrainer(const MeasurementRow& row) {
  return row.process_id && row.metric == "rank_steps_count" && row.value.value_or(0) > 0;
}

// Ids of the processes that took batches.
std::set<int64_t> TrainersOf(const RunView& run) {
  std::set<int64_t> ids;
  for (const MeasurementRow& row : run.measurements) {
    if (IsOfTrainer(row)) ids.insert(*row.process_id);
  }
  return ids;
}

std::optional<PythonTime> TimeOfTrainers(const RunView& run) {
  const std::set<int64_t> ids = TrainersOf(run);
  return LookAtPython(run, {ids.begin(), ids.end()}, false);
}

// Whether a trainer's main thread is in none of its loaders, nor before its loop.
bool IsInStep(const std::vector<PythonFrame>& frames) {
  if (IsAside(frames) || TakesAndTrains(frames) || StartsProcess(frames)) return false;
  return std::none_of(frames.begin(), frames.end(), [](const PythonFrame& frame) {
    return IsOfHook(frame) || IsLoader(frame) || HandsOver(frame);
  });
}

}  // namespace

std::optional<PythonPlace> PlaceOf(const RunView& run, const OperatorRow& op) {
  if (op.stage.starts_with("tf.data")) return PlaceInTfData(run, op);
  PythonLines lines;
  for (const StackRow& stack : run.stacks) {
    if (stack.kind != "python") continue;
    const std::vector<PythonFrame> frames = FramesOf(stack.folded);
    if (const size_t first = FirstIn(frames, op); first > 0) {
      lines.Add(InnermostOwn(frames, first), static_cast<double>(stack.time_ns) * 1e-9);
    }
  }
  return lines.Busiest();
}

std::optional<Activity> ActivityIn(const RunView& run, const OperatorRow& op) {
  const bool of_tf_data = op.stage.starts_with("tf.data");
  const std::set<int64_t> trainers = TrainersOf(run);
  std::array<double, kNumActivities> seconds = {};
  double all_s = 0;
  int64_t samples_count = 0;
  for (const StackRow& stack : run.stacks) {
    if (stack.kind != "python") continue;
    const std::vector<PythonFrame> frames = FramesOf(stack.folded);
    if (frames.empty()) continue;
    const bool is_called = of_tf_data && IsCalledByTensorflow(frames);
    const bool in_step = op.kind == "consumer" && stack.thread == "MainThread" &&
                         stack.process_id && trainers.contains(*stack.process_id) &&
                         IsInStep(frames);
    if (!is_called && !in_step && FirstIn(frames, op) == 0) continue;
    const double lasted_s = static_cast<double>(stack.time_ns) * 1e-9;
    seconds[static_cast<size_t>(ActivityOf(frames))] += lasted_s;
    all_s += lasted_s;
    samples_count += stack.samples_count;
  }
  const auto* most = std::max_element(seconds.begin(), seconds.end());
  if (samples_count < kFewestSamples || *most < kClearlyMost * all_s) return std::nullopt;
  return static_cast<Activity>(most - seconds.begin());
}

bool WorksInOwnThreads(const RunView& run, const OperatorRow& op) {
  std::set<int64_t> ids;
  for (const MeasurementRow& row : run.measurements) {
    const bool waits = row.metric == "off_cpu_ns" && row.value && row.process_id;
    if (waits && row.operator_name == op.name && row.stage == op.stage) ids.insert(*row.process_id);
  }
  const auto seen = LookAtActivity(run, {ids.begin(), ids.end()});
  if (!seen || seen->samples_count < kFewestSamples) return false;
  const double works = seen->Others(Activity::kWorks);
  const double all = works + seen->Others(Activity::kSleeps) + seen->Others(Activity::kNetwork) +
                     seen->Others(Activity::kLocks);
  if (works < kThreadsAtOneThing || works < kClearlyMost * all) return false;
  double on_cpu_s = 0;
  for (const MeasurementRow& row : run.measurements) {
    const bool counts = row.metric == "on_cpu_ns" && row.value && row.process_id &&
                        ids.contains(*row.process_id) && row.operator_name.empty();
    if (counts && !IsMainThread(row.thread)) on_cpu_s += *row.value * 1e-9;
  }
  return on_cpu_s >= kThreadsAtOneThing * works * seen->sampled_s;
}

std::optional<WorkerTime> LookAtWorkers(const RunView& run,
                                        const std::vector<int64_t>& process_ids) {
  PythonLines lines;
  double fetching_s = 0, starting_s = 0;
  for (const StackRow& stack : run.stacks) {
    if (stack.kind != "python" || stack.thread != "MainThread" || !stack.process_id) continue;
    if (std::find(process_ids.begin(), process_ids.end(), *stack.process_id) == process_ids.end()) {
      continue;
    }
    const std::vector<PythonFrame> frames = FramesOf(stack.folded);
    // What the parent was doing when it forked comes first.
    const auto loop = std::find_if(frames.begin(), frames.end(), [](const PythonFrame& frame) {
      return frame.function == "_worker_loop";
    });
    if (loop == frames.end()) {
      // A new interpreter, which loads the program's modules again.
      const bool spawns = std::any_of(frames.begin(), frames.end(), [](const PythonFrame& frame) {
        return frame.file.ends_with("multiprocessing/spawn.py");
      });
      if (spawns) starting_s += static_cast<double>(stack.time_ns) * 1e-9;
      continue;
    }
    const bool fetches = std::any_of(loop, frames.end(), [](const PythonFrame& frame) {
      return frame.file.ends_with("torch/utils/data/_utils/fetch.py");
    });
    if (!fetches && Waits(frames)) continue;
    const double seconds = static_cast<double>(stack.time_ns) * 1e-9;
    (fetches ? fetching_s : starting_s) += seconds;
    lines.Add(InnermostOwn(frames, static_cast<size_t>(loop - frames.begin())), seconds);
  }
  const double all_s = fetching_s + starting_s;
  if (all_s < kPlaceLeastSeconds) return std::nullopt;
  return WorkerTime{starting_s / all_s, lines.Busiest()};
}

std::optional<PythonPlace> PlaceOfFeeders(const RunView& run,
                                          const std::vector<int64_t>& process_ids, bool computes) {
  PythonLines lines;
  double all_s = 0;
  for (const StackRow& stack : run.stacks) {
    if (stack.kind != "python" || stack.thread != "MainThread" || !stack.process_id) continue;
    if (std::find(process_ids.begin(), process_ids.end(), *stack.process_id) == process_ids.end()) {
      continue;
    }
    std::vector<PythonFrame> frames = FramesOf(stack.folded);
    LeaveParent(&frames);
    if (frames.empty() || Waits(frames) || IsIdle(frames) || IsImport(frames)) continue;
    const double seconds = static_cast<double>(stack.time_ns) * 1e-9;
    lines.Add(computes && TakesTask(frames) ? &frames.back() : InnermostOwn(frames, 0), seconds);
    all_s += seconds;
  }
  return all_s < kPlaceLeastSeconds ? std::nullopt : lines.Busiest();
}

std::optional<PythonPlace> PlaceOfStep(const RunView& run) {
  const std::optional<PythonTime> time = TimeOfTrainers(run);
  return time ? time->step_place : std::nullopt;
}

bool TrainsInPython(const RunView& run) {
  return std::any_of(
      run.measurements.begin(), run.measurements.end(), [](const MeasurementRow& row) {
        constexpr std::string_view kNames[] = {"python", "pt_", "ray::", "accelerate", "torchrun"};
        return IsOfTrainer(row) && StartsWithAny(row.process, kNames);
      });
}

bool IsStepUnseen(const RunView& run) {
  if (!TrainsInPython(run)) return false;
  const std::optional<PythonTime> time = TimeOfTrainers(run);
  if (time && (time->samples_count >= kFewestSamples || time->step_place)) return false;
  return !BesideTrainingByFunctions(run);
}

std::optional<BesideTraining> BesideTrainingByFunctions(const RunView& run) {
  const std::set<int64_t> all = TrainersOf(run);
  const std::vector<int64_t> ids(all.begin(), all.end());
  const std::optional<BesideTraining> beside = LookBesideTraining(run, ids);
  // A copy to a device waits for what that computes.
  const bool has_device =
      std::any_of(run.accelerator_use.begin(), run.accelerator_use.end(),
                  [](const AcceleratorUseRow& row) { return row.use_ratio >= kAcceleratorUnused; });
  return has_device ? beside : Larger(beside, LookAtOwnLoading(run, ids));
}

}  // namespace headrace::analysis
