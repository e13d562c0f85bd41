// Where the narrow place is: the stage that is busy, and what the queues around it say.
#include <fmt/format.h>

#include <algorithm>

#include "analysis/model/bottleneck.h"
#include "analysis/model/limits/limit_kind.h"
#include "base/units.h"
#include "dashboards/pages/page_run.h"
#include "dashboards/report/page_words.h"

namespace headrace::dashboards {
namespace {

using analysis::Bottleneck;
using analysis::Finding;
using analysis::PipelineModel;

std::string StageAnswer(const analysis::RunView& run, const PipelineModel& model, size_t s) {
  const analysis::StageModel& stage = model.stages()[s];
  std::string text = fmt::format("{} is busy {} of its threads' time", stage.name,
                                 FormatPercent(std::clamp(stage.busy_ratio, 0.0, 1.0)));
  if (stage.queue) {
    const analysis::QueueRow& queue = run.queues[*stage.queue];
    const double empty = queue.empty_ratio.value_or(0), full = queue.full_ratio.value_or(0);
    if (std::max(empty, full) > 0) {
      text += fmt::format(", and the queue after it is {} {} of the time",
                          empty >= full ? "empty" : "full", FormatPercent(std::max(empty, full)));
    }
  }
  return text + ".";
}

std::string AnswerOf(const analysis::RunView& run, const analysis::Statements& statements) {
  const PipelineModel& model = *statements.model;
  const Bottleneck& bottleneck = *statements.bottleneck;
  const Finding& first = bottleneck.findings[0];
  if (bottleneck.verdict == analysis::Verdict::kUndecided) {
    return "It is undecided. The line 'check' above says what would decide it.";
  }
  if (bottleneck.verdict == analysis::Verdict::kBalanced && bottleneck.findings.size() > 1) {
    return fmt::format("Nothing stands out: {} and {} limit alike.", LimitWord(first.limit),
                       LimitWord(bottleneck.findings[1].limit));
  }
  if (first.limit.kind->AtConsumer()) return "Nowhere: the trainer sets the pace.";
  if (first.limit.Is(analysis::kCoresLimit)) {
    return bottleneck.alone
               ? "At no single stage: together they want more CPU cores than other programs leave."
               : "At no single stage: together they want more CPU cores than there are.";
  }
  const std::vector<size_t> stages = first.limit.kind->StagesAt(model, first.limit);
  if (stages.size() == 1 && !model.stages()[stages[0]].on_consumer) {
    return StageAnswer(run, model, stages[0]);
  }
  return fmt::format("{} limits.", SentenceStart(first.limit));
}

Card Pipeline(const LoadedRun& loaded) {
  Card card;
  card.question = "Where is the narrow place?";
  const analysis::Statements& statements = loaded.statements;
  card.sql =
      "SELECT stage, parallelism_count, lifetime_ns, on_cpu_ns, runnable_ns FROM stage_summary "
      "WHERE run_id = {run} ORDER BY stage_index";
  if (!statements.model || !statements.bottleneck) {
    card.empty = loaded.run.operators.empty()
                     ? "This program has no instrumentation, so its stages are not known."
                     : "There is no model of this run: " + statements.withheld + ".";
    return card;
  }
  card.answer = AnswerOf(loaded.run, statements);
  card.read = {
      "A box is a stage. Its bar is the time of its threads in the steady part of the run.",
      "A queue is drawn with its slots. The blue part is how full it was on average.",
      "The limit is the busy stage after a full queue and before an empty one.",
      "Blue is the work of a stage. Ochre wants a core, and grey waits for others: neither is "
      "work."};
  return card;
}

HR_CARD("pipeline", Pipeline);

}  // namespace
}  // namespace headrace::dashboards
