// Which operator costs what, and in which code.
#include <fmt/format.h>

#include <algorithm>

#include "analysis/model/bottleneck.h"
#include "base/units.h"
#include "dashboards/pages/page_run.h"

namespace headrace::dashboards {
namespace {

constexpr double kUnknownRatio = 0.02;  // of the CPU time that is known

Card Operators(const LoadedRun& loaded) {
  Card card;
  card.question = "Which operator costs what?";
  card.sql =
      "SELECT stage, operator, busy_ns, on_cpu_ns, blocked_ns, runnable_ns, rows_count, "
      "bytes_out_bytes FROM operator_summary WHERE run_id = {run} ORDER BY stage_index, "
      "position_index";
  const analysis::RunView& run = loaded.run;
  if (run.operators.empty()) {
    card.empty = "This program has no instrumentation, so its operators are not known.";
    card.command = fmt::format("{} profile -- python train.py", run.program);
    return card;
  }
  card.read = {"The bar is the time of its stage's threads in which the operator was at work.",
               "'Alone allows' is the rate if the operator had its stage's threads to itself."};
  int64_t all_ns = 0, unknown_ns = 0;
  const analysis::OperatorRow* most = nullptr;
  for (const analysis::OperatorRow& op : run.operators) {
    const int64_t cpu_ns = op.on_cpu_ns.value_or(0);
    if (!op.on_cpu_ns) unknown_ns += op.busy_ns;
    all_ns += cpu_ns;
    if (cpu_ns > 0 && (most == nullptr || cpu_ns > most->on_cpu_ns.value_or(0))) most = &op;
  }
  std::string culprit;
  if (loaded.statements.bottleneck && loaded.statements.model &&
      loaded.statements.bottleneck->verdict == analysis::Verdict::kLimited &&
      loaded.statements.bottleneck->findings[0].culprit) {
    culprit =
        loaded.statements.model->operators()[*loaded.statements.bottleneck->findings[0].culprit]
            .name;
  }
  if (most == nullptr) {
    card.answer = culprit.empty() ? "This run did not measure CPU time by operator."
                                  : fmt::format("{} holds up the pipeline.", culprit);
    return card;
  }
  // With much of it unknown a share of the rest would be too large.
  if (static_cast<double>(unknown_ns) > kUnknownRatio * static_cast<double>(all_ns)) {
    card.answer =
        fmt::format("{}{} uses most of the CPU time that is known by operator.",
                    culprit.empty() ? "" : culprit + " holds up the pipeline; ", most->name);
    return card;
  }
  const std::string share =
      FormatPercent(static_cast<double>(most->on_cpu_ns.value_or(0)) / static_cast<double>(all_ns));
  card.answer = culprit.empty() || culprit == most->name
                    ? fmt::format("{} uses {} of the operators' CPU time.", most->name, share)
                    : fmt::format("{} holds up the pipeline; {} uses most CPU time ({}).", culprit,
                                  most->name, share);
  return card;
}

Card StacksCard(const LoadedRun& loaded) {
  Card card;
  card.question = "In which code?";
  card.sql =
      "SELECT kind, class, stage, operator, folded, samples_count, time_ns FROM stack_summary "
      "WHERE "
      "run_id = {run} ORDER BY time_ns DESC";
  if (loaded.run.stacks.empty()) {
    card.empty = "No stacks were sampled.";
    card.command = loaded.run.program + " doctor";
    return card;
  }
  card.answer = "Functions by the time that threads spent in them.";
  card.read = {"Rows are stage, operator, then the call stack. The width is time.",
               "Select a frame to widen it. A frame's own time is what no frame below it covers."};
  return card;
}

HR_CARD("operators", Operators);
HR_CARD("stacks", StacksCard);

}  // namespace
}  // namespace headrace::dashboards
