#include "analysis/outside/native_time.h"

#include <algorithm>
#include <string_view>

#include "analysis/thresholds.h"

namespace headrace::analysis {
namespace {

template <size_t kCount>
bool HasAny(std::string_view folded, const std::string_view (&parts)[kCount]) {
  return std::any_of(std::begin(parts), std::end(parts), [&](std::string_view part) {
    return folded.find(part) != std::string_view::npos;
  });
}

// Of oneDNN, Eigen and XLA, and of TensorFlow's kernels; code made at run time is that of oneDNN
// and XLA in these programs.
constexpr std::string_view kStep[] = {"dnnl::",
                                      "xla::cpu::",
                                      "[code made at run time]",
                                      "TensorContraction",
                                      "Conv2D",
                                      "MatMul",
                                      "Backprop",
                                      "tensorflow::ApplyAdam",
                                      "gebp_kernel",
                                      "FusedBatchNorm",
                                      "tensorflow::ResourceApply",
                                      "Softmax"};

constexpr std::string_view kLoads[] = {"tensorflow::data::",
                                       "tensorflow::PyFuncOp",
                                       "DecodeImage",
                                       "DecodeJpeg",
                                       "jpeg_",
                                       "png_",
                                       "inflate",
                                       "ResizeBilinear",
                                       "ParseExample",
                                       "ParseSingleExample"};

constexpr std::string_view kEither[] = {"Eigen::internal::TensorExecutor"};

constexpr std::string_view kRunTime[] = {"tensorflow::", "xla::", "tsl::"};

}  // namespace

bool NativeTime::IsStep(double waits_s) const {
  return samples_count >= kFewestSamples && step_s >= kMostOfRunTime * (step_s + loads_s) &&
         step_s + either_s >= kStepFillsWaits * waits_s;
}

bool NativeTime::IsLoading(double steady_s) const {
  return samples_count >= kFewestSamples && loads_s >= kMostOfRunTime * (step_s + loads_s) &&
         loads_s >= kRunTimeLoads * steady_s;
}

std::optional<NativeTime> LookAtNative(const RunView& run,
                                       const std::vector<int64_t>& process_ids) {
  NativeTime time;
  bool is_run_time = false;
  for (const StackRow& stack : run.stacks) {
    if (stack.kind != "cpu" || !stack.process_id) continue;
    if (std::find(process_ids.begin(), process_ids.end(), *stack.process_id) == process_ids.end()) {
      continue;
    }
    is_run_time = is_run_time || HasAny(stack.folded, kRunTime);
    const double seconds = static_cast<double>(stack.time_ns) * 1e-9;
    // tf.data calls kernels, and these call none of it.
    const bool loads = HasAny(stack.folded, kLoads);
    if (!loads && !HasAny(stack.folded, kStep)) {
      if (HasAny(stack.folded, kEither)) time.either_s += seconds;
      continue;
    }
    (loads ? time.loads_s : time.step_s) += seconds;
    time.samples_count += stack.samples_count;
  }
  if (!is_run_time) return std::nullopt;
  return time;
}

}  // namespace headrace::analysis
