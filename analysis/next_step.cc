#include "analysis/next_step.h"

#include <fmt/format.h>

#include <cmath>

#include "analysis/recommendations.h"
#include "base/units.h"

namespace headrace::analysis {
namespace {

// "+4 %", "+35 % [20, 51]"
std::string Percents(double ratio, const Interval& interval) {
  return fmt::format("{:+.0f} % [{:.0f}, {:.0f}]", 100 * ratio, 100 * interval.low,
                     100 * interval.high);
}

std::string PlanCommand(const RunView& run) {
  const std::string plan =
      fmt::format("{} plan {}{}", run.program, run.run.run_id, run.database_option);
  if (run.run.pipeline_path.empty()) return plan;
  return fmt::format("{} -o plan.json -f && {} run {}{} --plan plan.json --duration 10s", plan,
                     run.program, ShellWord(run.run.pipeline_path), run.database_option);
}

NextStep OfPlan(const RunView& run, const Allocation& plan) {
  NextStep next;
  const std::string words = ChangeWords(run, plan);
  const std::string gain = Percents(plan.predicted / plan.now - 1, plan.gain_interval);
  if (plan.shown()) {
    next.kind = NextKind::kChange;
    next.text = fmt::format("{} ({} predicted", words, gain);
    if (plan.memory_change_bytes) {
      const double bytes = *plan.memory_change_bytes;
      next.text += fmt::format(", {}{}", bytes < 0 ? "-" : "+", FormatBytes(std::abs(bytes)));
    }
    next.text += ")";
    next.command = PlanCommand(run);
    return next;
  }
  next.kind = NextKind::kCompare;
  next.command = CompareCommand(run, plan);
  next.text = fmt::format("no change is sure to gain; {} may ({} predicted): {}", words, gain,
                          next.command.empty() ? "try it, record that run and compare the two"
                                               : "a comparison decides");
  return next;
}

NextStep OfConsumer(const PipelineModel& model, const Bottleneck& bottleneck) {
  if (model.stall_ratio() < kKeepsUpStall) {
    return {NextKind::kNothing,
            "nothing in the pipeline: it keeps up; more speed there gains nothing", ""};
  }
  return {NextKind::kWork,
          fmt::format("no setting gains 3 % or more; the consumer has the smallest bound and waits "
                      "{} of each step all the same{}",
                      FormatPercent(model.stall_ratio()),
                      bottleneck.loss.empty() ? std::string() : ": " + bottleneck.loss),
          ""};
}

NextStep OfCores(const RunView& run, const Statements& statements, const std::string& culprit) {
  constexpr double kLeastOthers = 0.2;  // of the cores
  const PipelineModel& model = *statements.model;
  const double others = model.cores_other().value_or(0);
  std::string text;
  if (others > kLeastOthers * model.cores_budget()) {
    text = fmt::format(
        "stop the other programs on this machine, or move them: they use {:.1f} "
        "cores",
        others);
  } else {
    text = "no setting helps: threads do not add cores";
  }
  const MoreCores more = PredictMoreCores(Evidence(run, statements));
  if (more.outcome.gain_interval.low > 0) {
    text += fmt::format("; {:.0f} more core{} {} predicted", more.cores,
                        more.cores == 1 ? " gives" : "s give",
                        Percents(more.outcome.gain, more.outcome.gain_interval));
  }
  if (!culprit.empty()) {
    const double share =
        model.demands().cpu_s > 0
            ? model.demands().operators[*statements.bottleneck->findings[0].culprit].cpu_s /
                  model.demands().cpu_s
            : 0;
    constexpr double kWorthMaking = 0.1;
    if (share >= kWorthMaking) text += fmt::format("; or make {} cheaper", culprit);
  }
  return {NextKind::kWork, text, ""};
}

}  // namespace

std::string ChangeWords(const RunView& run, const Allocation& plan) {
  std::string text;
  for (const Change& change : plan.changes) {
    std::string knob = change.knob;
    for (char& c : knob) c = c == '.' ? ' ' : c;
    // A DataLoader of a program that headrace.wrap() accounts for.
    const bool own = run.run.pipeline_path.empty();
    if (own && (change.knob == "loader.parallelism" || change.knob == "workers.parallelism")) {
      knob = "num_workers";
    }
    text += fmt::format("{}{} {} -> {}", text.empty() ? "" : ", ", knob, change.from, change.to);
  }
  return text;
}

std::string CompareCommand(const RunView& run, const Allocation& plan) {
  if (run.run.pipeline_path.empty() || plan.changes.empty()) return "";
  std::string a, b;
  for (const Change& change : plan.changes) {
    a += fmt::format(" --a {}={}", change.knob, change.from);
    b += fmt::format(" --b {}={}", change.knob, change.to);
  }
  return fmt::format("{} compare {}{}{}{}", run.program, ShellWord(run.run.pipeline_path), a, b,
                     run.database_option);
}

NextStep NextStepOf(const RunView& run, const Statements& statements) {
  const PipelineModel& model = *statements.model;
  if (statements.allocation && !statements.allocation->changes.empty()) {
    return OfPlan(run, *statements.allocation);
  }
  const Bottleneck& bottleneck = *statements.bottleneck;
  const Finding& first = bottleneck.findings[0];
  const std::string culprit = first.culprit ? model.operators()[*first.culprit].name : "";
  switch (first.limit.kind) {
    case LimitKind::kConsumer:
      return OfConsumer(model, bottleneck);
    case LimitKind::kCores:
      return OfCores(run, statements, culprit);
    case LimitKind::kLock:
      return {NextKind::kWork,
              fmt::format("no setting helps: hold lock {} for less time or split it; more threads "
                          "only wait for it",
                          first.limit.name),
              ""};
    case LimitKind::kDevice:
      return {NextKind::kWork,
              fmt::format("no setting helps: read fewer bytes from {} or use a faster one",
                          first.limit.name),
              ""};
    case LimitKind::kOrder:
      return {NextKind::kWork,
              fmt::format("give stage {} a longer queue, or set pipeline.order to \"any\" if the "
                          "order of batches does not matter",
                          model.stages()[first.limit.index].name),
              ""};
    case LimitKind::kThread:
      return {NextKind::kWork,
              fmt::format("a worker beside the consumer gains less than 3 %; make {} cheaper",
                          culprit.empty() ? "the loading" : culprit),
              ""};
    case LimitKind::kStage:
      break;
  }
  const StageModel& stage = model.stages()[first.limit.index];
  if (stage.max_parallelism <= 0 || stage.parallelism < stage.max_parallelism) {
    return {NextKind::kWork, "no setting gains 3 % or more over what was observed", ""};
  }
  return {NextKind::kWork,
          fmt::format("no setting helps: stage {} is at its most threads; make {} cheaper",
                      first.limit.name, culprit),
          ""};
}

}  // namespace headrace::analysis
