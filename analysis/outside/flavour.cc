#include "analysis/outside/flavour.h"

#include <algorithm>
#include <iterator>
#include <string>
#include <string_view>

#include "analysis/run/python_frames.h"

namespace headrace::analysis {
namespace {

template <typename Predicate>
bool AnyPythonFrame(const RunView& run, Predicate predicate) {
  return std::any_of(run.stacks.begin(), run.stacks.end(), [&](const StackRow& stack) {
    if (stack.kind != "python") return false;
    const std::vector<PythonFrame> frames = FramesOf(stack.folded);
    return std::any_of(frames.begin(), frames.end(), predicate);
  });
}

bool HasFrameIn(const RunView& run, std::string_view folder) {
  return AnyPythonFrame(run, [&](const PythonFrame& frame) { return IsIn(frame, folder); });
}

// A worker of a DataLoader, or who asks one for a batch.
bool IsOfDataLoader(const PythonFrame& frame) {
  return IsIn(frame, "torch/utils/data/") &&
         (frame.function.ends_with("__next__") || frame.function.ends_with("_worker_loop"));
}

}  // namespace

bool UsesTrainingLibrary(const RunView& run) {
  constexpr const char* kLibraries[] = {"torch/", "tensorflow/", "keras/", "jax/"};
  return std::any_of(std::begin(kLibraries), std::end(kLibraries),
                     [&](const char* library) { return HasFrameIn(run, library); });
}

OutsideFlavour FlavourOf(const RunView& run, const std::vector<ThreadGroup>& groups,
                         bool uses_training_library) {
  for (const ThreadGroup& group : groups) {
    const std::string thread = WithoutMain(group.thread);
    if (thread.starts_with("pt_data_worker") || thread.starts_with("pt_main_thread")) {
      return OutsideFlavour::kTorch;
    }
  }
  // JAX has threads of these names, too.
  const bool is_jax = HasFrameIn(run, "jax/_src/") && !HasFrameIn(run, "tensorflow/python/");
  const auto is_of_tensorflow = [&](const std::string& thread) {
    if (thread.starts_with("tf_data")) return true;
    return !is_jax && thread.starts_with("tf_") && !thread.starts_with("tf_XLA");
  };
  for (const ThreadGroup& group : groups) {
    if (is_of_tensorflow(group.thread)) return OutsideFlavour::kTensorflow;
  }
  for (const MeasurementRow& row : run.measurements) {  // idle threads are listed there too
    if (is_of_tensorflow(row.thread)) return OutsideFlavour::kTensorflow;
  }
  // That a program has imported torch says nothing of how it loads.
  if (AnyPythonFrame(run, IsOfDataLoader)) return OutsideFlavour::kTorch;
  if (uses_training_library) return OutsideFlavour::kPlain;
  for (const ProcessRow& process : run.processes) {
    if (process.command.find("torch") != std::string::npos) return OutsideFlavour::kTorch;
  }
  return OutsideFlavour::kPlain;
}

}  // namespace headrace::analysis
