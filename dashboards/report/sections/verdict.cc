// The verdict block: how much the consumer waits, what limits, why, what to change, what then.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "analysis/next_step.h"
#include "base/units.h"
#include "dashboards/report/measured.h"
#include "dashboards/report/outside_words.h"
#include "dashboards/report/report.h"
#include "dashboards/report/wording.h"

namespace headrace::dashboards {
namespace {

using analysis::Bottleneck;
using analysis::Finding;
using analysis::Limit;
using analysis::LimitKind;
using analysis::PipelineModel;
using analysis::RunView;
using analysis::Verdict;

std::string Rate(double batches_per_second) { return FormatRate(batches_per_second, "batches"); }

std::string Name(const Limit& limit) {
  switch (limit.kind) {
    case LimitKind::kConsumer:
      return "the consumer";
    case LimitKind::kCores:
      return "the cores";
    case LimitKind::kStage:
      return limit.name;
    case LimitKind::kOrder:
      return "the order of the batches";
    case LimitKind::kThread:
      return "one thread";
    default:
      return fmt::format("{} {}", analysis::LimitKindName(limit.kind), limit.name);
  }
}

// Resampling cannot make anything certain.
std::string Probability(double probability) {
  return probability > 0.99 ? ">0.99" : fmt::format("{:.2f}", probability);
}

std::string Plural(int64_t count, const char* noun) {
  return fmt::format("{} {}{}", count, noun, count == 1 ? "" : "s");
}

// "busy 98 % of its 1 thread; its input queue is full 91 % of the time, its output empty 88 %"
std::string StageEvidence(const RunView& run, const PipelineModel& model, size_t s) {
  const analysis::StageModel& stage = model.stages()[s];
  std::string text = fmt::format("busy {} of its {}", FormatPercent(stage.busy_ratio),
                                 Plural(stage.parallelism, "thread"));
  if (s > 0 && model.stages()[s - 1].queue) {
    const analysis::QueueRow& input = run.queues[*model.stages()[s - 1].queue];
    if (input.full_ratio) {
      text +=
          fmt::format("; its input queue is full {} of the time", FormatPercent(*input.full_ratio));
    }
  }
  if (stage.queue && run.queues[*stage.queue].empty_ratio) {
    text += fmt::format("; its output queue is empty {} of the time",
                        FormatPercent(*run.queues[*stage.queue].empty_ratio));
  }
  return text;
}

// "; it waits for storage 63 % of the time it is busy", where the kernel's split says that one
// cause takes most of an operator's time.
std::string WaitEvidence(const RunView& run, const analysis::OperatorRow& op) {
  if (op.busy_ns <= 0) return "";
  for (const char* cause : {"storage", "network", "lock", "sleep"}) {
    const auto waited = SumOf(run, "off_cpu_ns", [&](const analysis::MeasurementRow& row) {
      return row.operator_name == op.name && row.stage == op.stage && row.cause == cause;
    });
    const double share = waited.value_or(0) / static_cast<double>(op.busy_ns);
    if (share < 0.5) continue;
    return fmt::format(
        "; it {} {} of the time it is busy",
        std::string(cause) == "sleep" ? "sleeps" : fmt::format("waits for {}", cause),
        FormatPercent(std::min(1.0, share)));
  }
  return "";
}

std::string CulpritText(const RunView& run, const PipelineModel& model, const Finding& finding) {
  const std::string op = finding.culprit ? model.operators()[*finding.culprit].name : "";
  const std::string probability = "probability " + Probability(finding.probability);
  switch (finding.limit.kind) {
    case LimitKind::kConsumer:
      return fmt::format("the consumer itself, {}: it computes {} per step", probability,
                         FormatDuration(model.demands().consumer_s * 1e9));
    case LimitKind::kCores: {
      std::string text = fmt::format("the cores, {}: {:.2f} of {:.2f} cores in use", probability,
                                     model.cores_used().value_or(0), model.cores_available());
      const double share =
          finding.culprit && model.demands().cpu_s > 0
              ? model.demands().operators[*finding.culprit].cpu_s / model.demands().cpu_s
              : 0;
      if (!op.empty())
        text += fmt::format("; {} takes {} of the CPU time", op, FormatPercent(share));
      if (model.cores_other() && *model.cores_other() > 0.1) {
        text += fmt::format("; other processes use {:.2f}{}", *model.cores_other(),
                            model.cores_contended() ? ", and share the cores with it" : "");
      }
      return text;
    }
    case LimitKind::kStage: {
      const bool fused = model.stages()[finding.limit.index].operators.size() > 1;
      const std::string name =
          fused ? fmt::format("{} (operator {})", finding.limit.name, op) : finding.limit.name;
      return fmt::format("{}, {}: {}{}", name, probability,
                         StageEvidence(run, model, finding.limit.index),
                         finding.culprit ? WaitEvidence(run, run.operators[*finding.culprit]) : "");
    }
    case LimitKind::kOrder: {
      const analysis::StageModel& stage = model.stages()[finding.limit.index];
      return fmt::format(
          "{}, {}: the {} of {} wait for the slowest of them, as elements leave in "
          "order and the queue has no room for the others",
          Name(finding.limit), probability, Plural(stage.parallelism, "thread"), stage.name);
    }
    case LimitKind::kThread:
      return fmt::format("one thread loads and computes in turn, {}: it loads {} of the time{}",
                         probability, FormatPercent(model.stall_ratio()),
                         op.empty() ? "" : fmt::format(", most of it in {}", op));
    default:
      return fmt::format("{}{}, {}: held {} of the time", Name(finding.limit),
                         op.empty() ? "" : fmt::format(" (operator {})", op), probability,
                         FormatPercent(std::min(1.0, finding.utilisation)));
  }
}

std::string BecauseText(const PipelineModel& model, const Bottleneck& bottleneck) {
  const Finding& first = bottleneck.findings[0];
  std::string text;
  if (first.limit.kind == LimitKind::kStage) {
    const analysis::StageModel& stage = model.stages()[first.limit.index];
    text = fmt::format("{} can do {} with its {}", first.limit.name, Rate(first.limit.bound),
                       Plural(stage.parallelism, "thread"));
  } else {
    text = fmt::format("{} allow{} at most {}", Name(first.limit),
                       first.limit.kind == LimitKind::kCores ? "" : "s", Rate(first.limit.bound));
  }
  const Finding* next = nullptr;
  for (const Finding& finding : bottleneck.findings) {
    if (&finding == &first || !std::isfinite(finding.limit.bound)) continue;
    if (finding.limit.kind == LimitKind::kConsumer || finding.within_first) continue;
    if (next == nullptr || finding.limit.bound < next->limit.bound) next = &finding;
  }
  if (next != nullptr) {
    text += fmt::format("; {} could do {}", Name(next->limit), Rate(next->limit.bound));
  }
  if (model.demands().consumer_s * model.demands().rate >= 0.001 &&
      first.limit.kind != LimitKind::kConsumer) {
    text += fmt::format("; the consumer wants {}", Rate(1 / model.demands().consumer_s));
  }
  return text + fmt::format("; observed {}", Rate(model.demands().rate));
}

// What the plan that this run was started with had said, beside what came of it.
void AddPlanned(const analysis::Statements& statements, Section* section) {
  if (!statements.planned) return;
  const analysis::PlannedRate& said = *statements.planned;
  std::string text =
      fmt::format("the plan had predicted {}", FormatRate(said.predicted, "batches"));
  Quantity predicted = Quantity::Of(said.predicted, Unit::kPerSecond, Source::kEstimate);
  if (said.low && said.high) {
    text += fmt::format(" [{:.4g}, {:.4g}]", *said.low, *said.high);
    predicted = predicted.WithInterval(*said.low, *said.high);
  }
  text += fmt::format("; observed {}: the prediction was {:+.1f} % off",
                      FormatRate(said.observed, "batches"), 100 * said.error_ratio());
  section->sentences.push_back({"PLANNED", text});
  section->facts.push_back({"planned.batches_per_second", predicted});
  section->facts.push_back(
      {"planned.error_ratio", Quantity::Of(said.error_ratio(), Unit::kRatio, Source::kEstimate)});
}

void AddPlan(const RunView& run, const analysis::Statements& statements, Section* section) {
  const analysis::Allocation& plan = *statements.allocation;
  const analysis::NextStep next = analysis::NextStepOf(run, statements);
  section->sentences.push_back({"DO NEXT", next.text});
  if (!next.command.empty()) section->sentences.push_back({"", next.command, true});
  std::string then = fmt::format("limited by {}", Name(plan.limited_by));
  if (std::isfinite(plan.next_bound) && plan.limited_by.bound > 0) {
    then += fmt::format(", then by {} ({:+.0f} %)", Name(plan.next),
                        100 * (plan.next_bound / plan.limited_by.bound - 1));
  }
  section->sentences.push_back({"THEN", then});
  AddPlanned(statements, section);
  section->facts.push_back(
      {"predicted.batches_per_second",
       Quantity::Of(plan.predicted, Unit::kPerSecond, Source::kEstimate)
           .WithInterval(plan.predicted_interval.low, plan.predicted_interval.high)});
  section->facts.push_back(
      {"predicted.gain_ratio",
       Quantity::Of(plan.predicted / plan.now - 1, Unit::kRatio, Source::kEstimate)
           .WithInterval(plan.gain_interval.low, plan.gain_interval.high)});
  section->facts.push_back({"then_limited_by", plan.limited_by.name});
  Table changes{
      "changes", "", {{"knob", "knob"}, {"from", "now"}, {"to", "plan"}, {"why", "why"}}, {}, true};
  for (const analysis::Change& change : plan.changes) {
    changes.rows.push_back({change.knob, Number(change.from, Unit::kCount, ""),
                            Number(change.to, Unit::kCount, ""), change.why});
  }
  section->tables.push_back(std::move(changes));
}

Table Findings(const PipelineModel& model, const Bottleneck& bottleneck) {
  Table table{"findings",
              "",
              {{"name", "row"},
               {"kind", "kind"},
               {"operator", "operator"},
               {"probability", "probability"},
               {"bound_batches_per_second", "bound"},
               {"utilisation_ratio", "used"}},
              {},
              true};
  for (const Finding& finding : bottleneck.findings) {
    Quantity bound = Quantity::Unavailable("limits nothing in this run", Unit::kPerSecond);
    if (std::isfinite(finding.limit.bound)) {
      bound = Quantity::Of(finding.limit.bound, Unit::kPerSecond, Source::kAccount)
                  .WithInterval(finding.bound_interval.low, finding.bound_interval.high);
    }
    table.rows.push_back({finding.limit.name, analysis::LimitKindName(finding.limit.kind),
                          finding.culprit ? model.operators()[*finding.culprit].name : "",
                          Quantity::Of(finding.probability, Unit::kRatio, Source::kEstimate), bound,
                          Ratio(finding.utilisation, "")});
  }
  return table;
}

std::string StallSentence(const PipelineModel& model, const Bottleneck& bottleneck) {
  if (model.demands().consumer_s * model.demands().rate < 0.001) {
    return "the consumer computes nothing, so the pipeline's own rate is what counts: " +
           Rate(model.demands().rate);
  }
  std::string text =
      fmt::format("{}: the consumer waited {} of each step", StallGrade(model.stall_ratio()),
                  FormatPercent(model.stall_ratio()));
  if (bottleneck.stall_interval) text += "  " + PercentInterval(*bottleneck.stall_interval);
  return text + "  " + StallThresholds();
}

// The three ways in which the limit was looked for, where runs without input or from the device
// tell the third. Said aloud where they differ.
void AddThirdOpinion(const Bottleneck& bottleneck, const analysis::Differential& differential,
                     Section* section) {
  if (!differential.opinion) return;
  section->sentences.push_back(
      {"OPINIONS",
       fmt::format(
           "demands: {}; waits and queues: {}; runs with and without input: {} ({})",
           bottleneck.verdict == Verdict::kUndecided ? std::string("undecided")
                                                     : Name(bottleneck.findings[0].limit),
           bottleneck.witness ? Name(*bottleneck.witness) : std::string("nothing stands out"),
           analysis::InputOpinionName(*differential.opinion), differential.because)});
  section->facts.push_back({"third_opinion", analysis::InputOpinionName(*differential.opinion)});
  if (differential.disagreement.empty()) return;
  section->sentences.push_back({"BUT", differential.disagreement});
  section->facts.push_back({"third_disagreement", differential.disagreement});
}

// What else is not believed, after the first that the verdict names.
void AddDoubts(const analysis::Doubts& doubts, Section* section) {
  constexpr size_t kMostLines = 5;
  for (size_t i = 1; i < std::min(doubts.lines.size(), kMostLines); ++i) {
    section->sentences.push_back({"ALSO", doubts.lines[i]});
  }
}

// A run without input has no pipeline to judge: it says what the consumer takes, and for which runs
// that counts.
void AddCeiling(const RunView& run, const analysis::Statements& statements, Section* section) {
  const double seconds = static_cast<double>(run.steps.wall_ns) * 1e-9;
  std::string text = "none, by intention: " + statements.withheld;
  if (run.steps.steps_count > 0 && seconds > 0) {
    const double rate = static_cast<double>(run.steps.steps_count) / seconds;
    text += "; the consumer alone takes " + Rate(rate);
    section->facts.push_back({"ceiling.batches_per_second", Number(rate, Unit::kPerSecond, "")});
  }
  section->sentences.push_back({"VERDICT", text});
  section->facts.push_back({"state", "withheld"});
  section->facts.push_back({"reason", statements.withheld});
  for (const analysis::SiblingRow& sibling : run.siblings) {
    if (sibling.kind != "pipeline") continue;
    section->sentences.push_back({"DO NEXT", "read the run that it is the ceiling of"});
    section->sentences.push_back(
        {"", fmt::format("{} report {}{}", run.program, sibling.run_id, run.database_option),
         true});
    return;
  }
  section->sentences.push_back({"DO NEXT", "record the pipeline itself, with the same settings"});
}

std::optional<Section> VerdictSection(const RunView& run, const analysis::Statements& statements) {
  Section section{"verdict", "", {}, {}, {}};
  if (run.run.state != "complete" && !run.run.state.empty()) {
    section.sentences.push_back(
        {"NOTE", fmt::format("this run is {}: figures cover what was recorded", run.run.state)});
  }
  if (run.run.kind == "ceiling") {
    AddCeiling(run, statements, &section);
    return section;
  }
  if (!statements.bottleneck && statements.outside && statements.outside->withheld.empty()) {
    AddOutsideVerdict(run, *statements.outside, &section);
    return section;
  }
  if (!statements.bottleneck) {
    std::string why = statements.withheld;
    if (statements.outside && !statements.outside->withheld.empty()) {
      why += "; seen from outside: " + statements.outside->withheld;
    }
    section.sentences.push_back({"VERDICT", "withheld: " + why});
    AddDoubts(statements.doubts, &section);
    section.facts.push_back({"state", "withheld"});
    section.facts.push_back({"reason", why});
    return section;
  }
  const PipelineModel& model = *statements.model;
  const Bottleneck& bottleneck = *statements.bottleneck;
  const Finding& first = bottleneck.findings[0];
  if (const std::string drift = DriftText(model.phases()); !drift.empty()) {
    section.sentences.push_back({"NOTE", drift});
  }
  if (const std::string slower = analysis::Words(model.phases().slower); !slower.empty()) {
    section.sentences.push_back({"NOTE", slower});
    section.facts.push_back({"slower_part", slower});
  }
  section.sentences.push_back({"VERDICT", StallSentence(model, bottleneck)});
  Quantity stall = Quantity::Of(model.stall_ratio(), Unit::kRatio, Source::kAccount);
  if (bottleneck.stall_interval) {
    stall = stall.WithInterval(bottleneck.stall_interval->low, bottleneck.stall_interval->high);
  }
  section.facts = {
      {"state", analysis::VerdictName(bottleneck.verdict)},
      {"grade", StallGradeKey(model.stall_ratio())},
      {"stall_ratio", stall},
      {"limit.name", first.limit.name},
      {"limit.kind", analysis::LimitKindName(first.limit.kind)},
      {"limit.operator", first.culprit ? model.operators()[*first.culprit].name : ""},
      {"limit.probability", Quantity::Of(first.probability, Unit::kRatio, Source::kEstimate)},
      {"observed.batches_per_second", Number(model.demands().rate, Unit::kPerSecond, "")},
      {"observed.rows_per_second",
       Number(model.demands().rate * model.demands().rows, Unit::kRowsPerSecond, "")}};
  switch (bottleneck.verdict) {
    case Verdict::kBalanced:
      section.sentences.push_back(
          {"CULPRIT",
           fmt::format("balanced: {} (probability {:.2f}) and {} ({:.2f}) limit together{}",
                       Name(first.limit), first.probability, Name(bottleneck.findings[1].limit),
                       bottleneck.findings[1].probability,
                       bottleneck.loss.empty() ? "" : "; " + bottleneck.loss)});
      break;
    case Verdict::kUndecided:
      section.sentences.push_back(
          {"CULPRIT",
           fmt::format("undecided: {} (probability {:.2f}) or {} ({:.2f})", Name(first.limit),
                       first.probability, Name(bottleneck.findings[1].limit),
                       bottleneck.findings[1].probability)});
      section.sentences.push_back({"MEASURE", bottleneck.measure});
      section.facts.push_back({"measure", bottleneck.measure});
      break;
    default:
      section.sentences.push_back({"CULPRIT", CulpritText(run, model, first)});
  }
  section.sentences.push_back({"BECAUSE", BecauseText(model, bottleneck)});
  if (!bottleneck.disagreement.empty()) {
    section.sentences.push_back({"BUT", bottleneck.disagreement});
    section.facts.push_back({"disagreement", bottleneck.disagreement});
  }
  if (statements.differential) AddThirdOpinion(bottleneck, *statements.differential, &section);
  if (statements.allocation) AddPlan(run, statements, &section);
  section.tables.push_back(Findings(model, bottleneck));
  return section;
}

HR_SECTION("verdict", 0, VerdictSection);

}  // namespace
}  // namespace headrace::dashboards
