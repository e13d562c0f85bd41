#include "dashboards/report/limit_words.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <string_view>

#include "analysis/model/cores_users.h"
#include "analysis/model/limits/limit_kind.h"
#include "analysis/outside/python_places.h"
#include "analysis/outside/trainers_time.h"
#include "analysis/run/database_locks.h"
#include "analysis/run/own_threads.h"
#include "analysis/thresholds.h"
#include "base/units.h"
#include "dashboards/report/measured.h"
#include "dashboards/report/page_words.h"
#include "dashboards/report/wording.h"

namespace headrace::dashboards {
namespace {

using analysis::Bottleneck;
using analysis::Finding;
using analysis::PipelineModel;
using analysis::RunView;
using analysis::Verdict;

std::string BatchRate(double per_second) { return FormatRate(per_second, "batches"); }

// What an operator waits in for most of its busy time, by the kernel's split, and for how much.
struct MainWait {
  const char* cause;
  const char* does;     // "getitem ..."; empty: the cause is not known
  const char* waiting;  // "operator getitem, ..."
  double share = 0;
};

std::optional<MainWait> MainWaitOf(const RunView& run, const analysis::OperatorRow& op) {
  constexpr double kMost = 0.5;
  constexpr MainWait kWaits[] = {
      {"storage", "waits for storage", "waiting for storage"},
      {"network", "waits for the network", "waiting for the network"},
      {"lock", "waits for a lock", "waiting for a lock"},
      {"sleep", "sleeps", "sleeping on a timer"},
      {"pipe", "waits for another process", "waiting for another process at a pipe"}};
  constexpr MainWait kBehindThreads[] = {
      {"network", "waits for its threads, and they for the network,",
       "waiting for its threads and they for the network"},
      {"storage", "waits for its threads, and they for storage,",
       "waiting for its threads and they for storage"},
      {"sleep", "waits for its threads, and they for a timer,",
       "waiting for its threads and they for a timer"},
      {"cpu", "waits for threads of its process, which compute,",
       "waiting for threads of its process, which compute"}};
  if (op.busy_ns <= 0) return std::nullopt;
  for (MainWait wait : kWaits) {
    const auto waited = SumOf(run, "off_cpu_ns", [&](const analysis::MeasurementRow& row) {
      return row.operator_name == op.name && row.stage == op.stage && row.cause == wait.cause;
    });
    wait.share = std::min(1.0, waited.value_or(0) / static_cast<double>(op.busy_ns));
    if (wait.share < kMost) continue;
    if (std::string_view(wait.cause) != "lock" && std::string_view(wait.cause) != "sleep") {
      return wait;
    }
    if (std::string_view(wait.cause) == "sleep" && analysis::SqliteSleepRatio(run, op) > kMost) {
      return MainWait{"database", "waits for a lock on an SQLite database",
                      "waiting for a lock on an SQLite database", wait.share};
    }
    std::string behind = analysis::CauseInOwnThreads(run, op);
    if (behind == "sleep" && analysis::WorksInOwnThreads(run, op)) behind = "cpu";
    for (const MainWait& other : kBehindThreads) {
      if (behind == other.cause)
        return MainWait{other.cause, other.does, other.waiting, wait.share};
    }
    return wait;
  }
  const auto sampled = [&] {
    return analysis::ActivityIn(run, op).value_or(analysis::Activity::kWorks);
  };
  // A wait for a socket with a time limit, as Python's, is one in poll().
  const auto polled_ns = SumOf(run, "off_cpu_ns", [&](const analysis::MeasurementRow& row) {
    return row.operator_name == op.name && row.stage == op.stage &&
           (row.cause == "poll" || row.cause == "network");
  });
  const double polled = std::min(1.0, polled_ns.value_or(0) / static_cast<double>(op.busy_ns));
  if (polled >= kMost && sampled() == analysis::Activity::kNetwork) {
    return MainWait{"network", "waits for the network", "waiting for the network", polled};
  }
  // What it surely is blocked beside locks that it accounts for itself, and in no cause that the
  // kernel told.
  const auto blocked_ns =
      static_cast<double>(op.blocked_ns.value_or(op.blocked_low_ns.value_or(0)) - op.lock_wait_ns);
  const auto told_ns = SumOf(run, "off_cpu_ns", [&](const analysis::MeasurementRow& row) {
    return row.operator_name == op.name && (row.stage.empty() || row.stage == op.stage);
  });
  const double share = (blocked_ns - told_ns.value_or(0)) / static_cast<double>(op.busy_ns);
  if (share < kMost) return std::nullopt;
  // The functions in which its threads were sampled may tell.
  const char* cause = "unseen";
  switch (sampled()) {
    case analysis::Activity::kNetwork:
      cause = "network";
      break;
    case analysis::Activity::kLocks:
      cause = "lock";
      break;
    case analysis::Activity::kSleeps:
      cause = "sleep";
      break;
    default:
      break;
  }
  for (MainWait wait : kWaits) {
    wait.share = share;
    if (std::string_view(wait.cause) == cause) return wait;
  }
  return MainWait{cause, "", "", share};
}

// " getitem waits for storage 63 % of its busy time."
std::string WaitSentence(const RunView& run, const analysis::OperatorRow& op) {
  const std::optional<MainWait> wait = MainWaitOf(run, op);
  if (!wait) return "";
  if (*wait->does == 0) {
    return fmt::format(" {} waits {} of its busy time; the cause was not recorded.", op.name,
                       FormatPercent(wait->share));
  }
  return fmt::format(" {} {} {} of its busy time.", op.name, wait->does,
                     FormatPercent(wait->share));
}

// The trainer's step, where it waits for something that is no thread of its program: what it
// reports or saves to. Nothing where it computes, or threads compute for it.
const analysis::OperatorRow* WaitingStep(const RunView& run) {
  for (const analysis::OperatorRow& op : run.operators) {
    if (op.kind != "consumer") continue;
    const std::optional<MainWait> wait = MainWaitOf(run, op);
    if (!wait || *wait->waiting == 0) return nullptr;
    const std::string_view cause = wait->cause;
    // A wait with a time limit may be for the program's own threads.
    const bool sleeps =
        cause == "sleep" && analysis::ActivityIn(run, op) != analysis::Activity::kSleeps;
    return cause == "lock" || cause == "cpu" || sleeps ? nullptr : &op;
  }
  return nullptr;
}

// The trainer as what limits: "the trainer", "the trainer, sleeping on a timer", or "the trainer,
// validating".
std::string TrainerWithWait(const RunView& run) {
  if (const auto beside = analysis::BesideTrainingOf(run); beside && beside->IsMost()) {
    return fmt::format("the trainer, {}", beside->doing);
  }
  const analysis::OperatorRow* step = WaitingStep(run);
  const std::optional<MainWait> wait = step != nullptr ? MainWaitOf(run, *step) : std::nullopt;
  return wait ? fmt::format("the trainer, {}", wait->waiting) : "the trainer";
}

// "getitem is in with_backoff (flaky_store.py:28) 82 % of its time"; empty: it is spread.
std::string PlaceText(std::string_view what, const std::optional<analysis::PythonPlace>& place) {
  if (!place) return "";
  return fmt::format("{} is in {} {:.0f} % of its time", what, place->name, 100 * place->ratio);
}

// Where a trainer's step is, and what it does beside that: "its step is in fit (train.py:30) 69 %
// of its time", "62 % of what the trainer does is validation, in evaluate (train.py:40)". Empty:
// spread.
std::string StepPlace(const RunView& run, std::string_view step) {
  const auto beside = analysis::BesideTrainingOf(run);
  const std::string in_step =
      beside && beside->IsMost() ? "" : PlaceText(step, analysis::PlaceOfStep(run));
  if (!beside) return in_step;
  return in_step + (in_step.empty() ? "" : "; ") + beside->Words("the trainer", beside->place.name);
}

// `place` may be empty.
std::string WithPlace(const std::string& text, const std::string& place) {
  return text + (place.empty() ? "" : "; " + place);
}

// To follow another sentence; empty: nothing to say.
std::string AsSentence(const std::string& text) { return text.empty() ? "" : " " + text + "."; }

// Whether its threads compute, or are ready to, nearly all of its time: samples, in which waits are
// as well, then say where it computes.
bool HardlyWaits(const analysis::OperatorRow& op) {
  constexpr double kNearlyAll = 0.8;
  return op.on_cpu_ns && op.runnable_ns && op.busy_ns > 0 &&
         static_cast<double>(*op.on_cpu_ns + *op.runnable_ns) >=
             kNearlyAll * static_cast<double>(op.busy_ns);
}

// Of CPU cores that limit: the operator to blame where it uses more than half of what is used, and
// no processes without operators do; else null.
const analysis::OperatorRow* MostOfCores(const PipelineModel& model, const Finding& finding) {
  if (!finding.culprit || analysis::FindUnseenUsers(model)) return nullptr;
  // What runs ahead of the trainer is no part of a batch's cost.
  const double used = model.cores_used().value_or(0) + model.cores_ahead();
  const double own = model.demands().operators[*finding.culprit].cpu_s * model.demands().rate;
  return 2 * own > used ? &model.run().operators[*finding.culprit] : nullptr;
}

// The stage whose operators together use more than half of the cores that are used, but for the
// trainer's; empty: none does.
std::string StageOfMostCores(const PipelineModel& model) {
  if (!model.cores_used()) return "";
  const double used = *model.cores_used() + model.cores_ahead();
  std::map<std::string, double> by_stage;
  for (size_t i = 0; i < model.run().operators.size(); ++i) {
    const analysis::OperatorRow& op = model.run().operators[i];
    if (op.kind == "consumer") continue;
    by_stage[op.stage] += model.demands().operators[i].cpu_s * model.demands().rate;
  }
  for (const auto& [stage, cores] : by_stage) {
    if (2 * cores > used) return stage;  // of others there is less than half
  }
  return "";
}

// ", mostly used by workers (next)"; empty: nobody uses most of them.
std::string CoresUser(const PipelineModel& model, const Finding& finding) {
  if (const auto unseen = analysis::FindUnseenUsers(model)) {
    return ", mostly used by " + unseen->who;
  }
  const analysis::OperatorRow* op = MostOfCores(model, finding);
  if (op == nullptr) {
    const std::string stage = finding.culprit ? StageOfMostCores(model) : "";
    return stage.empty() ? "" : ", mostly used by " + stage;
  }
  if (op->kind == "consumer") return ", mostly used by the trainer";
  return ", mostly used by " +
         (op->stage == op->name ? op->stage : fmt::format("{} ({})", op->stage, op->name));
}

// Whether a step that takes that share of what its thread does is what the thread does.
bool MostlySteps(std::optional<double> share) {
  constexpr double kTimesLoading = 2;
  return share && *share > kTimesLoading * (1 - *share);
}

// The step's share of what the trainer's thread does beside waiting; none where it does nothing.
std::optional<double> StepShare(const PipelineModel& model) {
  const double loads_s = model.OnConsumers(model.current(), model.demands());
  const double step_s = model.demands().consumer_s;
  return step_s + loads_s > 0 ? std::optional(step_s / (step_s + loads_s)) : std::nullopt;
}

// Where the trainer's own thread limits and its step takes more of it than the batches do: "the
// trainer (probability 0.97): its step takes 91 % of its thread's time"; else empty.
std::string OwnThreadText(const PipelineModel& model, const Finding& first) {
  const std::optional<double> step = StepShare(model);
  if (!first.limit.Is(analysis::kThreadLimit) || !step || *step <= 0.5 || *step >= 1) return "";
  if (MostlySteps(step)) {
    return fmt::format("{} (probability {}): its step takes {} of its thread's time",
                       TrainerWithWait(model.run()), ProbabilityText(first.probability),
                       FormatPercent(*step));
  }
  return fmt::format(
      "{} (probability {}): its step takes {} of the time, {}", LimitWord(first.limit),
      ProbabilityText(first.probability), FormatPercent(*step),
      first.culprit ? model.operators()[*first.culprit].name + " the largest part of the rest"
                    : std::string("batches the rest"));
}

// Whether samples say where the operator to blame computes: of full cores only one that hardly
// waits.
bool HasPlace(const PipelineModel& model, const Finding& first) {
  if (!first.culprit || !first.limit.Is(analysis::kCoresLimit)) return first.culprit.has_value();
  return MostOfCores(model, first) != nullptr && HardlyWaits(model.run().operators[*first.culprit]);
}

// The trainer's step and loading in the same thread, where both are as tight: two parts of one
// thread are not two limits. Empty: the findings are others.
std::string OneThreadText(const PipelineModel& model, const Bottleneck& bottleneck) {
  if (bottleneck.findings.size() < 2) return "";
  const auto is = [&](size_t i, std::string_view kind) {
    return bottleneck.findings[i].limit.Is(kind);
  };
  const bool both = (is(0, analysis::kConsumerLimit) && is(1, analysis::kThreadLimit)) ||
                    (is(1, analysis::kConsumerLimit) && is(0, analysis::kThreadLimit));
  const std::optional<double> step = StepShare(model);
  if (!both || !step) return "";
  return MostlySteps(step)
             ? fmt::format("{}: its step takes {} of its thread's time",
                           TrainerWithWait(model.run()), FormatPercent(*step))
             : fmt::format("the trainer's own thread: loading in it, and its step, which takes {}",
                           FormatPercent(*step));
}

// Where in the program the limit is, as the line "limit" says it; empty: not there, or spread.
std::string PlaceOfLimit(const PipelineModel& model, const Bottleneck& bottleneck) {
  const Finding& first = bottleneck.findings[0];
  const RunView& run = model.run();
  if (bottleneck.unexplained || bottleneck.verdict == Verdict::kUndecided) return "";
  if (bottleneck.verdict == Verdict::kBalanced) {
    const bool steps = MostlySteps(StepShare(model)) && !OneThreadText(model, bottleneck).empty();
    return steps ? StepPlace(run, "the step") : "";
  }
  if (bottleneck.alone) return "";
  if (first.limit.Is(analysis::kConsumerLimit)) return StepPlace(run, "its step");
  if (!OwnThreadText(model, first).empty()) {
    return MostlySteps(StepShare(model)) ? StepPlace(run, "the step") : "";
  }
  if (!HasPlace(model, first)) return "";
  const analysis::OperatorRow& op = run.operators[*first.culprit];
  if (op.kind == "consumer") return StepPlace(run, "its step");
  return PlaceText(op.name, analysis::PlaceOf(run, op));
}

// What the operator that is to blame waits for, and where in the program it is, if the line
// "limit" does not say it.
std::string CulpritSentences(const PipelineModel& model, const Bottleneck& bottleneck) {
  const Finding& first = bottleneck.findings[0];
  const RunView& run = model.run();
  const bool is_told = !PlaceOfLimit(model, bottleneck).empty();
  if (first.limit.Is(analysis::kConsumerLimit)) {
    const analysis::OperatorRow* waits = WaitingStep(run);
    return (waits != nullptr ? WaitSentence(run, *waits) : "") +
           (is_told ? "" : AsSentence(StepPlace(run, "The step")));
  }
  if (!HasPlace(model, first)) return "";
  const analysis::OperatorRow& op = run.operators[*first.culprit];
  const bool may_wait =
      first.limit.Is(analysis::kStageLimit) || first.limit.Is(analysis::kThreadLimit);
  const std::string waits = may_wait ? WaitSentence(run, op) : "";
  if (is_told) return waits;
  return waits + AsSentence(op.kind == "consumer" ? StepPlace(run, "The step")
                                                  : PlaceText(op.name, analysis::PlaceOf(run, op)));
}

// The rows that do not limit: the tightest of them, and the trainer.
std::string OthersText(const PipelineModel& model, const Bottleneck& bottleneck) {
  const Finding& first = bottleneck.findings[0];
  const Finding* next = nullptr;
  for (const Finding& finding : bottleneck.findings) {
    if (&finding == &first || !std::isfinite(finding.limit.bound)) continue;
    if (finding.limit.Is(analysis::kConsumerLimit) || finding.within_first) continue;
    if (next == nullptr || finding.limit.bound < next->limit.bound) next = &finding;
  }
  std::string text;
  if (next != nullptr) {
    text = fmt::format("{} could do {}", LimitWord(next->limit), BatchRate(next->limit.bound));
  }
  if (HasTrainer(model) && !first.limit.Is(analysis::kConsumerLimit) &&
      !first.limit.Is(analysis::kHeldStepLimit)) {
    text += fmt::format("{}the trainer could take {}", text.empty() ? "" : ", ",
                        BatchRate(1 / model.demands().consumer_s));
  }
  return text;
}

// The limit, and the operator to blame where it is one of several.
std::string LimitName(const PipelineModel& model, const analysis::Limit& limit,
                      std::optional<size_t> culprit) {
  const std::string name = LimitWord(limit);
  const bool is_whole =
      limit.Is(analysis::kCoresLimit) || limit.Is(analysis::kConsumerLimit) ||
      (limit.Is(analysis::kStageLimit) && model.stages()[limit.index].operators.size() <= 1);
  if (!culprit || is_whole) return name;
  return OwnThreadWord(name, model.operators()[*culprit].name);
}

// As one of two: "the trainer's own thread (operator unpickle)".
std::string OneOfTwo(const PipelineModel& model, const Finding& finding) {
  std::string name = LimitName(model, finding.limit, finding.culprit);
  const size_t at = name.find(", operator ");
  return at == std::string::npos ? name : name.replace(at, 2, " (") + ")";
}

}  // namespace

bool HasTrainer(const PipelineModel& model) {
  return model.demands().consumer_s * model.demands().rate >= analysis::kComputesNothing;
}

bool IsTrainersThread(const PipelineModel& model, const Bottleneck& bottleneck) {
  const std::optional<double> step = StepShare(model);
  if (!MostlySteps(step)) return false;
  return !OneThreadText(model, bottleneck).empty() ||
         !OwnThreadText(model, bottleneck.findings[0]).empty();
}

std::string LimitLine(const PipelineModel& model, const Bottleneck& bottleneck) {
  const Finding& first = bottleneck.findings[0];
  const auto named = [&](const Finding& finding) {
    return fmt::format("{} (probability {})", LimitWord(finding.limit),
                       ProbabilityText(finding.probability));
  };
  const bool two = bottleneck.findings.size() > 1;
  if (bottleneck.unexplained) {
    return std::isfinite(first.limit.bound)
               ? fmt::format("undecided; by their costs alone it would be {}",
                             LimitWord(first.limit))
               : std::string("undecided: nothing that was measured limits it");
  }
  if (bottleneck.verdict == Verdict::kUndecided) {
    return two ? fmt::format("undecided: {} or {}", named(first), named(bottleneck.findings[1]))
               : fmt::format("undecided: {}", named(first));
  }
  if (bottleneck.verdict == Verdict::kBalanced && two) {
    if (const std::string text = OneThreadText(model, bottleneck); !text.empty()) {
      return WithPlace(text, PlaceOfLimit(model, bottleneck));
    }
    return fmt::format("{} and {} together", OneOfTwo(model, first),
                       OneOfTwo(model, bottleneck.findings[1]));
  }
  if (const std::string text = OwnThreadText(model, first); !text.empty()) {
    return WithPlace(text, PlaceOfLimit(model, bottleneck));
  }
  std::string name = LimitName(model, first.limit, first.culprit);
  const RunView& run = model.run();
  const bool of_operator = first.culprit && (first.limit.Is(analysis::kStageLimit) ||
                                             first.limit.Is(analysis::kThreadLimit));
  const analysis::OperatorRow* op = of_operator ? &run.operators[*first.culprit] : nullptr;
  if (first.limit.Is(analysis::kConsumerLimit)) {
    name = TrainerWithWait(run);
  } else if (op != nullptr) {
    const auto wait = MainWaitOf(run, *op);
    if (wait && *wait->waiting != 0) name += fmt::format(", {}", wait->waiting);
  }
  if (bottleneck.alone) {
    name += ", which other programs use";
  } else if (first.limit.Is(analysis::kCoresLimit)) {
    name += CoresUser(model, first);
  }
  name += fmt::format(" (probability {})", ProbabilityText(first.probability));
  if (const std::string place = PlaceOfLimit(model, bottleneck); !place.empty()) {
    name += ": " + place;
  }
  if (bottleneck.alone) {
    const analysis::Limit& alone = *bottleneck.alone;
    name += "; with the machine to itself: " +
            LimitName(model, alone, alone.kind->Culprit(model, alone));
  }
  return name;
}

std::string WhyLine(const PipelineModel& model, const Bottleneck& bottleneck) {
  const Finding& first = bottleneck.findings[0];
  if (!std::isfinite(first.limit.bound)) {
    return fmt::format("measured: {}; no operator's work explains it.",
                       BatchRate(model.demands().rate));
  }
  std::string text = first.limit.kind->Because(model, first.limit, first.utilisation);
  if (const std::string others = OthersText(model, bottleneck); !others.empty()) {
    text += "; " + others;
  }
  text += fmt::format(". Measured: {}{}{}.", BatchRate(model.demands().rate),
                      bottleneck.loss.empty() ? "" : "; ", bottleneck.loss);
  if (!bottleneck.unexplained && analysis::AllowsLess(first.limit, model.demands().rate)) {
    text += fmt::format(
        " This run does not show it well: {} may deliver between {} and {}. Its work may have "
        "ended in few moments. Record longer.",
        LimitWord(first.limit), FormatRate(first.bound_interval.low, "batches"),
        FormatRate(first.bound_interval.high, "batches"));
  }
  const bool is_step = !OwnThreadText(model, first).empty();
  if (is_step && !PlaceOfLimit(model, bottleneck).empty()) return text;
  return text + (is_step ? AsSentence(StepPlace(model.run(), "The step"))
                         : CulpritSentences(model, bottleneck));
}

}  // namespace headrace::dashboards
