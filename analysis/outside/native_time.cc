#include "analysis/outside/native_time.h"

#include <algorithm>
#include <set>
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

// Of oneDNN, Eigen and XLA, and of TensorFlow's kernels. Code made at run time is that of oneDNN
// and XLA in these programs.
constexpr std::string_view kStep[] = {"dnnl::",
                                      "xla::cpu::",
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

constexpr std::string_view kMadeCode[] = {"[code made at run time]"};
constexpr std::string_view kNumba[] = {"Dispatcher_call", "numba"};

constexpr std::string_view kRunTime[] = {"tensorflow::", "xla::", "tsl::"};

}  // namespace

bool NativeTime::IsStep(double waits_s, double cores) const {
  const double all_s = step_s + either_s;
  return samples_count >= kFewestSamples && step_s >= kMostOfRunTime * (step_s + loads_s) &&
         all_s >= kStepFillsWaits * waits_s &&
         all_s >= kStepFillsInParallel * waits_s * std::max(1.0, cores);
}

bool NativeTime::IsLoading(double steady_s) const {
  return samples_count >= kFewestSamples && loads_s >= kMostOfRunTime * (step_s + loads_s) &&
         loads_s >= kRunTimeLoads * steady_s;
}

bool NativeWaits::AreConditions() const {
  constexpr double kKnownWaits = 0.3;  // at least, of those at locks or conditions
  const double known_s = condition_s + lock_s;
  return samples_count >= kFewestSamples && condition_s >= kMostOfRunTime * known_s &&
         known_s >= kKnownWaits * (known_s + unknown_s);
}

NativeWaits LookAtNativeWaits(const RunView& run, const std::vector<int64_t>& process_ids,
                              const std::string& thread) {
  constexpr std::string_view kConditions[] = {"std::condition_variable",
                                              "CondVar::", "Eigen::EventCount", "WaitForWork"};
  const std::set<int64_t> ids(process_ids.begin(), process_ids.end());
  NativeWaits waits;
  for (const StackRow& stack : run.stacks) {
    if (stack.kind != "off_cpu" || !stack.process_id || !ids.contains(*stack.process_id)) continue;
    if (stack.thread != thread || stack.folded.find(";[lock];") == std::string::npos) continue;
    const double seconds = static_cast<double>(stack.time_ns) * 1e-9;
    if (stack.folded.ends_with("[no stack]")) {
      waits.unknown_s += seconds;
      continue;
    }
    (HasAny(stack.folded, kConditions) ? waits.condition_s : waits.lock_s) += seconds;
    waits.samples_count += stack.samples_count;
  }
  return waits;
}

std::optional<NativeTime> LookAtNative(const RunView& run,
                                       const std::vector<int64_t>& process_ids) {
  const std::set<int64_t> ids(process_ids.begin(), process_ids.end());
  const auto is_of = [&](const StackRow& stack) {
    return stack.kind == "cpu" && stack.process_id && ids.contains(*stack.process_id);
  };
  const auto has = [&](const auto& parts) {
    return std::any_of(run.stacks.begin(), run.stacks.end(), [&](const StackRow& stack) {
      return is_of(stack) && HasAny(stack.folded, parts);
    });
  };
  if (!has(kRunTime)) return std::nullopt;
  // Numba makes code, too, for whatever it is used.
  const bool is_numba = has(kNumba);
  NativeTime time;
  for (const StackRow& stack : run.stacks) {
    if (!is_of(stack)) continue;
    const double seconds = static_cast<double>(stack.time_ns) * 1e-9;
    // tf.data calls kernels, and these call none of it.
    const bool loads = HasAny(stack.folded, kLoads);
    const bool made = !is_numba && HasAny(stack.folded, kMadeCode);
    if (!loads && !made && !HasAny(stack.folded, kStep)) {
      if (HasAny(stack.folded, kEither)) time.either_s += seconds;
      continue;
    }
    (loads ? time.loads_s : time.step_s) += seconds;
    time.samples_count += stack.samples_count;
  }
  return time;
}

}  // namespace headrace::analysis
