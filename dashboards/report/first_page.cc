#include "dashboards/report/first_page.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <string_view>

#include "analysis/advice/next_step.h"
#include "analysis/model/bottleneck.h"
#include "analysis/model/limits/limit_kind.h"
#include "analysis/model/running_ahead.h"
#include "analysis/outside/python_places.h"
#include "analysis/outside/trainers_time.h"
#include "analysis/run/known_loaders.h"
#include "analysis/run/own_threads.h"
#include "analysis/run/settings.h"
#include "analysis/thresholds.h"
#include "base/units.h"
#include "collectors/store/exit_text.h"
#include "dashboards/report/accelerator_words.h"
#include "dashboards/report/limit_words.h"
#include "dashboards/report/measured.h"
#include "dashboards/report/outside_names.h"
#include "dashboards/report/outside_words.h"
#include "dashboards/report/own_work_words.h"
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
  const double loading = analysis::LoadingRatio(statements);
  page->badge = StallGrade(loading);
  page->severity = SeverityOf(loading);
  if (loading > stall) {
    page->verdict = fmt::format(
        "The trainer spends {:.0f} % of each step in loading of its own, and waits {} for batches.",
        100 * (loading - stall), FormatPercent(stall));
    return;
  }
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
    // One thread that loads and computes in turn: both shares are of its time, and sum to all of
    // it.
    const bool in_turn =
        model_.stages().size() == 1 && HasTrainer(model_) && model_.current().parallelism[s] == 0;
    const double busy = in_turn ? model_.stall_ratio() : stage.busy_ratio;
    parts_.push_back({PicturePart::Kind::kStage, stage.name, stage.parallelism,
                      std::clamp(busy, 0.0, 1.0), limit});
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
  std::string text = fmt::format("{} {} {}limit it", LimitWord(plan.limited_by),
                                 sure ? "will" : "would", plan.changes.empty() ? "still " : "");
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

// The advice `text` of a trainer that does something beside training.
std::string WithBesideTraining(std::string text, const analysis::BesideTraining& beside) {
  if (beside.IsMostlyLoading() && text.starts_with(analysis::kPipelineKeepsUp)) {
    return fmt::format("The loader keeps up, and the trainer loads in {} by itself: {}.",
                       beside.place.name, beside.advice);
  }
  const size_t at = text.find(analysis::kOnlyTheStep);
  const std::string advice = fmt::format("{}: that is {} of what the trainer does.",
                                         Capital(beside.advice), beside.Share());
  if (at != std::string::npos) {
    return text.replace(at, analysis::kOnlyTheStep.size(),
                        beside.IsMost() ? advice
                                        : "Only a cheaper training step is faster, or less of "
                                          "what is beside it. " +
                                              advice);
  }
  return fmt::format("{}{} {}", text, text.ends_with('.') ? "" : ".", advice);
}

void AddFixAndNext(const RunView& run, const Statements& statements, FirstPage* page) {
  if (statements.bottleneck->unexplained) return;  // "check" has what comes first
  if (!statements.allocation) {
    if (!statements.withheld.empty()) page->lines.push_back({"fix", statements.withheld});
    return;
  }
  const analysis::NextStep next = analysis::NextStepOf(run, statements);
  const bool is_change = next.kind == analysis::NextKind::kChange;
  const bool conditional = page->conditional && is_change;
  std::string text =
      next.text + (conditional && !next.measured ? ", if the load stays as it is" : "");
  const Bottleneck& bottleneck = *statements.bottleneck;
  const bool by_step = bottleneck.findings[0].limit.Is(analysis::kConsumerLimit) ||
                       IsTrainersThread(*statements.model, bottleneck);
  if (const auto beside = by_step ? analysis::BesideTrainingOf(run) : std::nullopt) {
    text = WithBesideTraining(std::move(text), *beside);
  }
  page->lines.push_back({"fix", std::move(text)});
  if (!next.command.empty()) page->lines.push_back({"", next.command, true});
  if (next.limited_then) {
    page->lines.push_back({"next", fmt::format("{} {} limit it", LimitWord(*next.limited_then),
                                               conditional ? "would" : "will")});
    return;
  }
  AddNext(statements, is_change, page);
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

// Processes that were killed with their instrumentation open, while the run went on: what was under
// way in them is in no figure. Empty: there are none. What a program kills as it ends is no loss.
std::string KilledWords(const RunView& run) {
  constexpr int64_t kAsItEndsNs = 1'000'000'000;
  const analysis::ProcessRow* first = nullptr;
  int64_t killed = 0;
  for (const analysis::ProcessRow& process : run.processes) {
    if (!process.has_accounts || !process.ended_ns || !collectors::IsCrash(process.exit_text) ||
        *process.ended_ns > run.run.duration_ns - kAsItEndsNs) {
      continue;
    }
    ++killed;
    if (first == nullptr || *process.ended_ns < *first->ended_ns) first = &process;
  }
  if (first == nullptr) return "";
  const std::string how = first->exit_text.substr(std::string_view("killed by ").size());
  const std::string when = FormatDuration(static_cast<double>(*first->ended_ns));
  return killed == 1
             ? fmt::format(
                   "Process {} was killed by {} after {}. Work it had begun is not counted.",
                   first->pid, how, when)
             : fmt::format(
                   "{} processes were killed, the first ({}) by {} after {}. Work they had begun "
                   "is not counted.",
                   killed, first->pid, how, when);
}

void AddConditions(const RunView& run, const Statements& statements, FirstPage* page) {
  if (run.run.state != "complete" && !run.run.state.empty()) {
    page->conditions.push_back(
        fmt::format("This run is {}: figures cover what was recorded.", run.run.state));
  }
  if (const std::string killed = KilledWords(run); !killed.empty()) {
    page->conditions.push_back(killed);
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
  page->verdict = WithheldWords(run, statements);
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
void AddSlowRank(const RunView& run, const Statements& statements, FirstPage* page) {
  page->lines.push_back({"limit", analysis::Words(*statements.slow_rank)});
  const std::string functions =
      statements.slow_rank_time ? SampledWords(*statements.slow_rank_time) : "";
  page->lines.push_back(
      {"why", "All took the same number of batches, so the others wait for it in each step. " +
                  (functions.empty() ? "The figures of all ranks together do not say what it "
                                       "waits for."
                                     : functions)});
  page->lines.push_back({"fix",
                         "Find what is different about it: its shard, its host, its cores. To see "
                         "what limits it, record only that rank of the next run:"});
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
    AddSlowRank(run, statements, page);
    AddAccelerators(statements, page);
    return;
  }
  page->lines.push_back({"limit", LimitLine(model, bottleneck)});
  page->lines.push_back({"why", WhyLine(model, bottleneck)});
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
