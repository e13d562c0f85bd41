#include "analysis/advice/second_view.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "analysis/model/bottleneck.h"
#include "analysis/model/limits/limit_kind.h"
#include "analysis/outside/python_places.h"
#include "analysis/outside/trainers_time.h"
#include "analysis/thresholds.h"

namespace headrace::analysis {
namespace {

// Whether what the threads show to limit is this: either is what the trainer's thread does, or
// neither is.
bool Fits(const PipelineModel& model, const Finding& finding, const Outside& seen,
          const std::optional<BesideTraining>& beside) {
  const Limit& limit = finding.limit;
  const OutsideLimit other = seen.findings[0].limit;
  const bool is_trainers = seen.IsConsumersDoing();
  // Threads show nothing of what devices do.
  if (limit.Is(kAcceleratorLimit)) return true;
  if (limit.Is(kHeldStepLimit)) {
    return other == OutsideLimit::kInterpreter || other == OutsideLimit::kConsumer;
  }
  if (limit.Is(kConsumerLimit)) {
    const bool says_it_loads = beside && beside->IsMostlyLoading();
    return is_trainers && (other != OutsideLimit::kOwnWork || says_it_loads);
  }
  if (limit.Is(kCoresLimit)) {
    const bool by_step =
        finding.culprit && model.run().operators[*finding.culprit].kind == "consumer";
    if (other == OutsideLimit::kConsumer) return by_step;
    return other == OutsideLimit::kOwnWork || other == OutsideLimit::kAlone ||
           other == OutsideLimit::kInterpreter || other == OutsideLimit::kHandOver ||
           other == OutsideLimit::kCores || other == OutsideLimit::kProducers;
  }
  if (limit.Is(kThreadLimit)) {
    // Workers that it starts again and again, and what is handed to it.
    if (IsCulpritShortLived(seen) || other == OutsideLimit::kHandOver) return true;
    // Of the thread's two parts the step may be the larger; and without its functions nobody knows
    // which of them it is at.
    if (other == OutsideLimit::kConsumer) return model.StepIsLarger() || MayLoad(seen);
    return is_trainers;
  }
  // Several threads of tf.data that call Python do so in turn.
  if (limit.Is(kStageLimit) && model.stages()[limit.index].name.starts_with("tf.data") &&
      model.current().parallelism[limit.index] > 1 && other == OutsideLimit::kInterpreter) {
    return false;
  }
  return limit.kind->AtConsumer() == is_trainers;
}

bool RecordsPythonStacks(const RunView& run) {
  return std::any_of(run.probes.begin(), run.probes.end(), [](const ProbeRow& probe) {
    return probe.probe == "Python stacks" && probe.state == "active";
  });
}

// A rate that is less of what the limit allows leaves time unexplained.
constexpr double kExplains = 0.75;

// Whether both views call the same thread the trainer: it waits as long, or is in a loader as long.
// What the program itself makes of a loader's rows is in neither.
bool IsSameTrainer(const PipelineModel& model, const Outside& seen) {
  const auto is_same = [&](double waits) {
    return std::abs(waits - model.stall_ratio()) <= kHighStall;
  };
  return is_same(seen.stall_ratio) || is_same(seen.InLoader().value_or(seen.stall_ratio));
}

}  // namespace

SecondView AskThreads(const RunView& run, const PipelineModel& model,
                      const Bottleneck& bottleneck) {
  SecondView view;
  view.at_most = kMostOfOthersPrograms;
  if (bottleneck.verdict == Verdict::kUndecided) return view;
  const Limit& first = bottleneck.findings[0].limit;
  const bool is_step = first.Is(kConsumerLimit) || (first.Is(kThreadLimit) && model.StepIsLarger());
  const std::optional<BesideTraining> beside = BesideTrainingOf(run);
  if (is_step && TrainsInPython(run) && !(beside && beside->IsMost())) {
    view.at_most = kTrainersStep;
  }
  if (is_step && IsStepUnseen(run)) {
    view.at_most = kStepUnseen;
    view.disagreement = fmt::format(
        "the step's functions were hardly seen ({}): it may also validate, save or load",
        RecordsPythonStacks(run) ? "record longer" : "pip install py-spy");
  }
  const Outside seen = LookFromOutside(run);
  if (!seen.withheld.empty() || !IsSameTrainer(model, seen)) return view;
  // By times on the CPU alone nothing is ever decided.
  if (seen.knowledge <= OutsideKnowledge::kCpu) return view;
  const bool alone = seen.findings[0].limit == OutsideLimit::kAlone;
  if (!seen.decided && !alone) {
    view.at_most = std::min(view.at_most, kThreadsUndecided);
    return view;
  }
  // What a trainer does between batches is in no operator: where the limit leaves much of the time
  // unexplained, its functions say what that is.
  const bool explains = model.demands().rate > kExplains * first.bound;
  if (!explains && !first.Is(kConsumerLimit) && seen.IsConsumersDoing() && seen.beside_training &&
      seen.beside_training->IsMost()) {
    view.at_most = std::min(view.at_most, kViewsDisagree);
    const BesideTraining& most = *seen.beside_training;
    view.disagreement =
        fmt::format("seen from outside, {}", most.Words("the trainer", most.place.name));
    return view;
  }
  const size_t named = bottleneck.verdict == Verdict::kBalanced ? 2 : 1;
  for (size_t f = 0; f < std::min(named, bottleneck.findings.size()); ++f) {
    if (Fits(model, bottleneck.findings[f], seen, beside)) return view;
  }
  view.at_most = std::min(view.at_most, kViewsDisagree);
  const OutsideLimit other = seen.findings[0].limit;
  view.disagreement = fmt::format(
      "seen from outside, the limit would be {}",
      other == OutsideLimit::kProducers ? "what feeds the trainer" : seen.LimitWord(other));
  return view;
}

}  // namespace headrace::analysis
