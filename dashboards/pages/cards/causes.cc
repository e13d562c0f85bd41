// Who the trainer waits for, and how long its steps take.
#include <fmt/format.h>

#include "analysis/model/bottleneck.h"
#include "analysis/run/settings.h"
#include "base/units.h"
#include "dashboards/pages/page_run.h"
#include "dashboards/report/limit_words.h"
#include "dashboards/report/page_words.h"

namespace headrace::dashboards {
namespace {

Card Causes(const LoadedRun& loaded) {
  Card card;
  card.question = "What does the trainer wait for?";
  card.sql =
      "SELECT step_ns, steps_count FROM step_time_histogram WHERE run_id = {run} ORDER BY step_ns";
  const analysis::Statements& statements = loaded.statements;
  if (!statements.model || !HasTrainer(*statements.model)) {
    card.empty = statements.model ? "It computes nothing, so it always waits."
                                  : "No steps of a trainer were recorded.";
    if (!loaded.run.run.pipeline_path.empty() && statements.model) {
      card.command =
          fmt::format("{} run {} --set consumer.step=5ms{}", loaded.run.program,
                      analysis::PipelineWord(loaded.run.run), loaded.run.database_option);
    }
    return card;
  }
  card.read = {"Each row takes one cause away. The hatched part of a step still waits.",
               "The bars below count the steps by how long they took, waiting included."};
  const Table* table = FindTable(loaded.report, "stall_causes");
  if (table == nullptr || table->rows.size() < 2) {
    card.answer = fmt::format("On average it waits {} of a step.",
                              FormatPercent(statements.model->stall_ratio()));
    return card;
  }
  const auto storage = KnownCell(*table, table->rows[0], "step_ratio");
  const auto rest = KnownCell(*table, table->rows[1], "step_ratio");
  card.answer =
      fmt::format("On average {} of a step waits for storage, {} for the rest of the pipeline",
                  FormatPercent(storage.value_or(0)), FormatPercent(rest.value_or(0)));
  const analysis::Bottleneck& bottleneck = *statements.bottleneck;
  const bool named = bottleneck.verdict == analysis::Verdict::kLimited &&
                     !bottleneck.findings[0].limit.Is(analysis::kConsumerLimit);
  card.answer +=
      named && rest.value_or(0) > storage.value_or(0)
          ? fmt::format(", where {} {}.", LimitWord(bottleneck.findings[0].limit),
                        bottleneck.findings[0].limit.Is(analysis::kCoresLimit) ? "are the limit"
                                                                               : "is the limit")
          : ".";
  return card;
}

HR_CARD("causes", Causes);

}  // namespace
}  // namespace headrace::dashboards
