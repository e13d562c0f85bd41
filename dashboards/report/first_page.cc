#include "dashboards/report/first_page.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <string_view>

#include "analysis/advice/next_step.h"
#include "analysis/model/bottleneck.h"
#include "analysis/model/limits/limit_kind.h"
#include "analysis/model/running_ahead.h"
#include "analysis/run/known_loaders.h"
#include "analysis/run/own_threads.h"
#include "analysis/run/settings.h"
#include "analysis/thresholds.h"
#include "base/units.h"
#include "dashboards/report/accelerator_words.h"
#include "dashboards/report/measured.h"
#include "dashboards/report/outside_names.h"
#include "dashboards/report/outside_words.h"
#include "dashboards/report/page_words.h"
#include "dashboards/report/wording.h"

namespace headrace::dashboards {
namespace {

using analysis::Bottleneck;
using analysis::Finding;
using analysis::Limit;
using analysis::PipelineModel;
using analysis::RunView;
using analysis::Statements;
using analysis::Verdict;

std::string Rate(double batches_per_second) { return FormatRate(batches_per_second, "batches"); }

// ---------------------------------------------------------------- the verdict

void AddStall(const Statements& statements, FirstPage* page) {
  const PipelineModel& model = *statements.model;
  if (!HasTrainer(model)) {
    page->badge = "NO TRAINER";
    page->verdict =
        fmt::format("The trainer computes nothing here, so this is the pipeline's own rate: {}.",
                    Rate(model.demands().rate));
    return;
  }
  const double stall = analysis::JobStall(statements);
  page->badge = StallGrade(stall);
  page->severity = SeverityOf(stall);
  if (analysis::DevicesLimit(statements)) {
    page->verdict = fmt::format(
        "The GPU is busy {} of the time. Meanwhile the trainer's thread waited {} of each step for "
        "data.",
        FormatPercent(statements.accelerators->mean.busy_ratio()),
        FormatPercent(model.stall_ratio()));
    return;
  }
  page->verdict = stall > model.stall_ratio()
                      ? StallSentence("The slowest rank", "of each step", stall, std::nullopt)
                      : StallSentence("The trainer", "of each step", stall,
                                      statements.bottleneck->stall_interval);
}

// ---------------------------------------------------------------- the picture

class Picture {
 public:
  Picture(const RunView& run, const Statements& statements) : run_(run), model_(*statements.model) {
    const Bottleneck& bottleneck = *statements.bottleneck;
    if (bottleneck.verdict == Verdict::kUndecided) return;
    Mark(bottleneck.findings[0]);
    if (bottleneck.verdict == Verdict::kBalanced && bottleneck.findings.size() > 1) {
      Mark(bottleneck.findings[1]);
    }
  }

  std::vector<PicturePart> Draw() {
    std::vector<size_t> last;  // stages whose queues the trainer takes from
    for (size_t s = 0; s < model_.stages().size(); ++s) {
      if (!model_.stages()[s].output) last.push_back(s);
    }
    if (model_.stages().size() > kMostStages) return {};
    AddInputs(last);
    if (HasTrainer(model_)) {
      parts_.push_back({PicturePart::Kind::kStage, "trainer", 0,
                        std::clamp(1 - model_.stall_ratio(), 0.0, 1.0), consumer_limits_});
    }
    return std::move(parts_);
  }

 private:
  static constexpr size_t kMostStages = 40;  // more are no picture

  void Mark(const Finding& finding) {
    const analysis::LimitKind& kind = *finding.limit.kind;
    consumer_limits_ = consumer_limits_ || kind.AtConsumer();
    const std::vector<size_t> stages = kind.StagesAt(model_, finding.limit);
    limits_.insert(limits_.end(), stages.begin(), stages.end());
  }

  void AddInputs(const std::vector<size_t>& inputs) {
    for (size_t i = 0; i < inputs.size(); ++i) {
      if (i > 0) parts_.push_back({PicturePart::Kind::kMerge, "+", 0, {}, false});
      AddStage(inputs[i]);
    }
  }

  void AddStage(size_t s) {
    const analysis::StageModel& stage = model_.stages()[s];
    AddInputs(stage.inputs);
    const bool limit = std::find(limits_.begin(), limits_.end(), s) != limits_.end();
    parts_.push_back({PicturePart::Kind::kStage, stage.name, stage.parallelism,
                      std::clamp(stage.busy_ratio, 0.0, 1.0), limit});
    std::optional<double> fill;
    if (stage.queue) fill = run_.queues[*stage.queue].mean_occupancy_ratio;
    if (stage.output || HasTrainer(model_)) {
      parts_.push_back({PicturePart::Kind::kQueue, "", 0, fill, false});
    }
  }

  const RunView& run_;
  const PipelineModel& model_;
  std::vector<size_t> limits_;
  bool consumer_limits_ = false;
  std::vector<PicturePart> parts_;
};

// ---------------------------------------------------------------- limit and why

// What an operator waits in for most of its busy time, by the kernel's split, and for how much.
struct MainWait {
  const char* cause;
  const char* does;     // "getitem ..."
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
       "waiting for its threads and they for storage"}};
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
    const std::string behind = analysis::CauseInOwnThreads(run, op);
    for (const MainWait& other : kBehindThreads) {
      if (behind == other.cause)
        return MainWait{other.cause, other.does, other.waiting, wait.share};
    }
    return wait;
  }
  return std::nullopt;
}

// " getitem waits for storage 63 % of its busy time."
std::string WaitSentence(const RunView& run, const analysis::OperatorRow& op) {
  const std::optional<MainWait> wait = MainWaitOf(run, op);
  if (!wait) return "";
  return fmt::format(" {} {} {} of its busy time.", op.name, wait->does,
                     FormatPercent(wait->share));
}

// Times as much as loading, a step is what its thread does.
constexpr double kMostlyStep = 2;

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
  if (*step > kMostlyStep * (1 - *step)) {
    return fmt::format("the trainer (probability {}): its step takes {} of its thread's time",
                       ProbabilityText(first.probability), FormatPercent(*step));
  }
  return fmt::format(
      "{} (probability {}): its step takes {} of the time, {}", LimitWord(first.limit),
      ProbabilityText(first.probability), FormatPercent(*step),
      first.culprit ? model.operators()[*first.culprit].name + " the largest part of the rest"
                    : std::string("batches the rest"));
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
  return *step > kMostlyStep * (1 - *step)
             ? fmt::format("the trainer: its step takes {} of its thread's time",
                           FormatPercent(*step))
             : fmt::format("the trainer's own thread: loading in it, and its step, which takes {}",
                           FormatPercent(*step));
}

// Whether the limit line calls the trainer's own thread the trainer, as its step takes most of it.
bool IsTrainersThread(const PipelineModel& model, const Bottleneck& bottleneck) {
  const std::optional<double> step = StepShare(model);
  if (!step || *step <= kMostlyStep * (1 - *step)) return false;
  return !OneThreadText(model, bottleneck).empty() ||
         !OwnThreadText(model, bottleneck.findings[0]).empty();
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
    text = fmt::format("{} could do {}", LimitWord(next->limit), Rate(next->limit.bound));
  }
  if (HasTrainer(model) && !first.limit.Is(analysis::kConsumerLimit)) {
    text += fmt::format("{}the trainer could take {}", text.empty() ? "" : ", ",
                        Rate(1 / model.demands().consumer_s));
  }
  return text;
}

std::string WhyLine(const RunView& run, const PipelineModel& model, const Bottleneck& bottleneck) {
  const Finding& first = bottleneck.findings[0];
  if (!std::isfinite(first.limit.bound)) {
    return fmt::format("measured: {}; no operator's work explains it.", Rate(model.demands().rate));
  }
  std::string text = first.limit.kind->Because(model, first.limit, first.utilisation);
  if (const std::string others = OthersText(model, bottleneck); !others.empty()) {
    text += "; " + others;
  }
  text += fmt::format(". Measured: {}{}{}.", Rate(model.demands().rate),
                      bottleneck.loss.empty() ? "" : "; ", bottleneck.loss);
  if (first.limit.Is(analysis::kStageLimit) && first.culprit) {
    text += WaitSentence(run, run.operators[*first.culprit]);
  }
  return text;
}

// ---------------------------------------------------------------- fix and next

void AddNext(const Statements& statements, bool advised, FirstPage* page) {
  if (!statements.allocation || statements.bottleneck->unexplained) return;
  const analysis::Allocation& plan = *statements.allocation;
  // Without a change nothing else can become the limit. A step that takes most of the trainer's
  // thread is the trainer, by whichever of the two rows.
  const bool at_trainer = statements.bottleneck->verdict == Verdict::kConsumer ||
                          IsTrainersThread(*statements.model, *statements.bottleneck);
  if (plan.changes.empty() && at_trainer) return;
  const bool sure = plan.changes.empty() || advised;
  std::string text = fmt::format("{} {} limit it{}", LimitWord(plan.limited_by),
                                 sure ? "will" : "would", plan.changes.empty() ? " still" : "");
  if (std::isfinite(plan.next_bound) && plan.limited_by.bound > 0) {
    const double room = plan.next_bound / plan.limited_by.bound - 1;
    text += room < 0.005 ? fmt::format(", as {} {}", sure ? "will" : "would", LimitWord(plan.next))
            : room < 1   ? fmt::format(", then {} at a rate {:.0f} % higher", LimitWord(plan.next),
                                       100 * room)
                         : fmt::format(", then {} at {:.{}f} times that rate", LimitWord(plan.next),
                                       1 + room, room < 9 ? 1 : 0);
  }
  page->lines.push_back({"next", text});
}

void AddFixAndNext(const RunView& run, const Statements& statements, FirstPage* page) {
  if (statements.bottleneck->unexplained) return;  // "check" has what comes first
  if (!statements.allocation) {
    if (!statements.withheld.empty()) page->lines.push_back({"fix", statements.withheld});
    return;
  }
  const analysis::NextStep next = analysis::NextStepOf(run, statements);
  const bool conditional = page->conditional && next.kind == analysis::NextKind::kChange;
  page->lines.push_back({"fix", next.text + (conditional ? ", if the load stays as it is" : "")});
  if (!next.command.empty()) page->lines.push_back({"", next.command, true});
  if (next.limited_then) {
    page->lines.push_back({"next", fmt::format("{} {} limit it", LimitWord(*next.limited_then),
                                               conditional ? "would" : "will")});
    return;
  }
  AddNext(statements, next.kind == analysis::NextKind::kChange, page);
}

// What the plan that this run was started with had said, beside what came of it.
void AddPlanned(const Statements& statements, FirstPage* page) {
  if (!statements.planned) return;
  const analysis::PlannedRate& said = *statements.planned;
  std::string text = fmt::format("predicted {}", Rate(said.predicted));
  if (said.low && said.high) {
    text += fmt::format(" [{}, {}]", FormatCount(*said.low), FormatCount(*said.high));
  }
  page->lines.push_back(
      {"plan",
       fmt::format("{}, measured {}: the prediction was {:.1f} % too {}", text, Rate(said.observed),
                   100 * std::abs(said.error_ratio()), said.error_ratio() < 0 ? "low" : "high")});
}

// ---------------------------------------------------------------- conditions

// What a CPU quota took, where it is not the limit that is named.
std::string StoppedByQuota(const Statements& statements) {
  constexpr double kWorthAWord = 0.05;  // share of the quota's periods
  std::optional<analysis::CpuQuota> quota;
  bool named = false;
  if (statements.model) {
    quota = statements.model->cpu_quota();
    named =
        statements.bottleneck && statements.bottleneck->findings[0].limit.Is(analysis::kCoresLimit);
  } else if (statements.outside) {
    quota = statements.outside->core_budget.quota;
    const auto& findings = statements.outside->findings;
    named = !findings.empty() && findings[0].limit == analysis::OutsideLimit::kCores;
  }
  if (!quota || named || quota->stopped_ratio.value_or(0) < kWorthAWord) return "";
  return fmt::format("The CPU quota of {:.2f} cores stopped it in {} of the quota's periods.",
                     quota->cores, FormatPercent(*quota->stopped_ratio));
}

// What limited the part that the page is not about; empty: nothing is known of it.
std::string EarlierLimitText(const Statements& statements, bool before_change) {
  if (!statements.earlier) return "";
  const analysis::EarlierLimit& earlier = *statements.earlier;
  if (before_change != (earlier.kind == analysis::PhaseKind::kEarlier)) return "";
  return fmt::format(" {} the limit was: {} (probability {}).",
                     before_change ? "Before the change" : "At the beginning",
                     LimitWord(earlier.limit), ProbabilityText(earlier.probability));
}

void AddConditions(const RunView& run, const Statements& statements, FirstPage* page) {
  if (run.run.state != "complete" && !run.run.state.empty()) {
    page->conditions.push_back(
        fmt::format("This run is {}: figures cover what was recorded.", run.run.state));
  }
  if (const std::optional<OtherLoad> load = OtherLoadOf(run, statements)) {
    page->conditional = true;
    page->conditions.push_back(BusySentence(*load));
  }
  if (const std::string quota = StoppedByQuota(statements); !quota.empty()) {
    page->conditions.push_back(quota);
  }
  if (statements.model == nullptr) return;
  if (const std::string drift = DriftText(statements.model->phases()); !drift.empty()) {
    page->conditions.push_back("It changed while it ran: " + drift + "." +
                               EarlierLimitText(statements, true));
  }
  if (const std::string slower = analysis::Words(statements.model->phases().slower);
      !slower.empty()) {
    page->conditions.push_back("NOT ALL OF THE RUN: " + slower + "." +
                               EarlierLimitText(statements, false));
  }
}

void MakeWithheld(const RunView& run, const Statements& statements, FirstPage* page) {
  page->badge = "NO VERDICT";
  std::string why = statements.withheld;
  if (statements.outside && !statements.outside->withheld.empty()) {
    why += "; seen from outside: " + statements.outside->withheld;
  }
  page->verdict = why;
  constexpr size_t kMostDoubts = 5;
  const auto& doubts = statements.doubts.lines;
  for (size_t i = 1; i < std::min(doubts.size(), kMostDoubts); ++i) {
    page->lines.push_back({"also", doubts[i]});
  }
  if (statements.doubts.any()) {
    page->lines.push_back(
        {"fix", "Fix the program's instrumentation: no verdict can rest on impossible figures."});
  } else if (analysis::IsOfService(run.run)) {
    page->lines.push_back({"fix", "This is one process of a job. See the whole job:"});
    page->lines.push_back(
        {"", fmt::format("{} report --fleet latest{}", run.program, run.database_option), true});
  } else if (run.run.pipeline_path.empty() && !run.operators.empty()) {
    const bool hooked =
        std::any_of(run.stages.begin(), run.stages.end(), [&](const analysis::StageRow& stage) {
          return analysis::FindKnownLoader(run, stage.name) != nullptr;
        });
    page->lines.push_back(
        {"fix", hooked
                    ? "Record it while it takes batches, or see all of it from outside: --no-hook."
                    : "Record it while it takes batches."});
  } else if (!run.run.pipeline_path.empty()) {
    page->lines.push_back({"fix", "Record it for longer:"});
    page->lines.push_back({"",
                           fmt::format("{} run {} --duration 10s{}", run.program,
                                       analysis::PipelineArguments(run.run), run.database_option),
                           true});
  }
}

// A run without input has no pipeline to judge: it says what the trainer takes, and for which runs
// that counts.
void MakeCeiling(const RunView& run, const Statements& statements, FirstPage* page) {
  page->badge = "TRAINER ALONE";
  page->verdict = statements.withheld;
  const double seconds = static_cast<double>(run.steps.wall_ns) * 1e-9;
  if (run.steps.steps_count > 0 && seconds > 0) {
    page->verdict += fmt::format("; the trainer alone takes {}",
                                 Rate(static_cast<double>(run.steps.steps_count) / seconds));
  }
  for (const analysis::SiblingRow& sibling : run.siblings) {
    if (sibling.kind != "pipeline") continue;
    page->lines.push_back({"fix", "this run repeats one batch; read the full run:"});
    page->lines.push_back(
        {"", fmt::format("{} report {}{}", run.program, sibling.run_id, run.database_option),
         true});
    return;
  }
  page->lines.push_back({"fix", "record the pipeline itself, with the same settings"});
}

// One rank holds up the others. The model has all of them together and knows no cause for it.
void AddSlowRank(const RunView& run, const analysis::SlowRank& slow, FirstPage* page) {
  page->lines.push_back({"limit", analysis::Words(slow)});
  page->lines.push_back({"why",
                         "All took equally many batches, so the others wait for it within their "
                         "steps. What it waits for is not known from all of them together."});
  page->lines.push_back({"fix",
                         "Find what is different about it: its shard, its host, its cores. In the "
                         "next run, record that rank alone for its own limit:"});
  page->lines.push_back(
      {"", fmt::format("{} profile -p PID{}", run.program, run.database_option), true});
}

void AddAccelerators(const Statements& statements, FirstPage* page) {
  if (!statements.accelerators) return;
  page->lines.push_back(
      {"gpu", AcceleratorLine(*statements.accelerators, TrainerWord(statements)) + "."});
}

void MakeFromModel(const RunView& run, const Statements& statements, FirstPage* page) {
  const PipelineModel& model = *statements.model;
  const Bottleneck& bottleneck = *statements.bottleneck;
  AddStall(statements, page);
  AddConditions(run, statements, page);
  if (!statements.slow_rank) page->picture = Picture(run, statements).Draw();
  if (statements.slow_rank) {
    AddSlowRank(run, *statements.slow_rank, page);
    AddAccelerators(statements, page);
    return;
  }
  page->lines.push_back({"limit", LimitLine(model, bottleneck)});
  page->lines.push_back({"why", WhyLine(run, model, bottleneck)});
  if (bottleneck.verdict == Verdict::kUndecided) {
    page->lines.push_back({"check", bottleneck.measure});
  }
  AddAccelerators(statements, page);
  if (!bottleneck.disagreement.empty()) {
    page->lines.push_back({"but", bottleneck.disagreement});
  }
  if (const std::string ahead = analysis::AheadWords(model); !ahead.empty()) {
    page->lines.push_back({"but", ahead + ". Bound it."});
  }
  if (statements.differential && !statements.differential->disagreement.empty()) {
    page->lines.push_back({"but", statements.differential->disagreement});
  }
  AddFixAndNext(run, statements, page);
  AddPlanned(statements, page);
}

}  // namespace

bool HasTrainer(const PipelineModel& model) {
  return model.demands().consumer_s * model.demands().rate >= analysis::kComputesNothing;
}

namespace {

// The limit, and the operator to blame where it is one of several.
std::string LimitName(const PipelineModel& model, const analysis::Limit& limit,
                      std::optional<size_t> culprit) {
  const std::string name = LimitWord(limit);
  const bool is_whole =
      limit.Is(analysis::kCoresLimit) || limit.Is(analysis::kConsumerLimit) ||
      (limit.Is(analysis::kStageLimit) && model.stages()[limit.index].operators.size() <= 1);
  if (!culprit || is_whole) return name;
  return fmt::format("{}, operator {}", name, model.operators()[*culprit].name);
}

}  // namespace

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
    if (const std::string text = OneThreadText(model, bottleneck); !text.empty()) return text;
    return fmt::format("{} and {} together", LimitWord(first.limit),
                       LimitWord(bottleneck.findings[1].limit));
  }
  if (const std::string text = OwnThreadText(model, first); !text.empty()) return text;
  std::string name = LimitName(model, first.limit, first.culprit);
  if (first.culprit && first.limit.Is(analysis::kStageLimit)) {
    const auto wait = MainWaitOf(model.run(), model.run().operators[*first.culprit]);
    if (wait) name += fmt::format(", {}", wait->waiting);
  }
  if (bottleneck.alone) name += ", which other programs use";
  name += fmt::format(" (probability {})", ProbabilityText(first.probability));
  if (bottleneck.alone) {
    const analysis::Limit& alone = *bottleneck.alone;
    name += "; with the machine to itself: " +
            LimitName(model, alone, alone.kind->Culprit(model, alone));
  }
  return name;
}

std::optional<OtherLoad> OtherLoadOf(const RunView& run, const Statements& statements) {
  // Share of the time with pressure, where others' use is not known.
  constexpr double kPressure = 0.5;
  OtherLoad load;
  std::optional<double> others;
  if (statements.model) {
    others = statements.model->cores_other_here();
    load.cores = statements.model->cores_budget();
  } else if (statements.outside) {
    // On fewer cores than the machine has, whose cores they use is not known.
    if (statements.outside->cores_free) others = statements.outside->cores_others;
    load.cores = statements.outside->core_budget.cores.value_or(0);
  }
  if (others) {
    if (load.cores <= 0 || *others <= analysis::kOthersMuch * load.cores) return std::nullopt;
    load.used_cores = others;
    return load;
  }
  double counted_ns = static_cast<double>(run.run.duration_ns);
  for (const analysis::MeasurementRow& row : run.measurements) {
    if (row.metric == "pressure_window_ns" && row.last_value) {
      counted_ns = std::max(counted_ns, *row.last_value);
    }
  }
  const auto waited = SumOf(run, "pressure_ns", [](const analysis::MeasurementRow& row) {
    return !row.process_id && !row.bucket && row.subject.empty() && row.cause == "cpu some";
  });
  if (!waited || counted_ns <= 0) return std::nullopt;
  load.pressure_ratio = std::min(1.0, *waited / counted_ns);
  if (*load.pressure_ratio < kPressure) return std::nullopt;
  return load;
}

FirstPage MakeFirstPage(const RunView& run, const Statements& statements) {
  FirstPage page;
  if (run.run.kind == "ceiling") {
    MakeCeiling(run, statements, &page);
  } else if (statements.bottleneck) {
    MakeFromModel(run, statements, &page);
  } else {
    const bool outside = statements.outside && statements.outside->withheld.empty();
    if (outside) {
      if (!run.operators.empty()) {
        page.conditions.push_back("Seen from outside, as " + statements.withheld + ".");
      }
      AddConditions(run, statements, &page);
      AddOutsidePage(run, *statements.outside, &page);
    } else {
      MakeWithheld(run, statements, &page);
      AddConditions(run, statements, &page);
    }
  }
  return page;
}

}  // namespace headrace::dashboards
