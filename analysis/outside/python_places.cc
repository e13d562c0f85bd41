#include "analysis/outside/python_places.h"

#include <algorithm>
#include <iterator>
#include <set>
#include <string_view>
#include <vector>

#include "analysis/outside/python_time.h"

namespace headrace::analysis {
namespace {

// A function of the hook calls what an operator does; "": what the operator is named after.
struct Caller {
  std::string_view function, operator_name;
};
constexpr Caller kCallers[] = {{"_MapItems.__getitem__", "getitem"},
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

// Whether the process was started for others' work, whatever its parent was doing when it forked.
bool IsChild(const std::vector<PythonFrame>& frames) {
  return std::any_of(frames.begin(), frames.end(), [](const PythonFrame& frame) {
    return frame.function == "BaseProcess._bootstrap" || frame.function == "spawn_main" ||
           frame.file.ends_with("default_worker.py");
  });
}

}  // namespace

std::optional<PythonPlace> PlaceOf(const RunView& run, const OperatorRow& op) {
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

std::optional<PythonPlace> PlaceOfStep(const RunView& run) {
  std::set<int64_t> trainers, children;
  for (const StackRow& stack : run.stacks) {
    if (stack.kind != "python" || stack.thread != "MainThread" || !stack.process_id) continue;
    (IsChild(FramesOf(stack.folded)) ? children : trainers).insert(*stack.process_id);
  }
  std::vector<int64_t> ids;
  std::set_difference(trainers.begin(), trainers.end(), children.begin(), children.end(),
                      std::back_inserter(ids));
  const std::optional<PythonTime> time = LookAtPython(run, ids, false);
  return time ? time->step_place : std::nullopt;
}

}  // namespace headrace::analysis
