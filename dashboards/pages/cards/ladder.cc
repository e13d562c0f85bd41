// What each resource would allow alone.
#include <fmt/format.h>

#include <cmath>

#include "analysis/model/bottleneck.h"
#include "base/units.h"
#include "dashboards/pages/page_run.h"
#include "dashboards/report/limit_words.h"
#include "dashboards/report/page_words.h"

namespace headrace::dashboards {
namespace {

std::string RateWord(double batches_per_second) {
  return FormatRate(batches_per_second, "batches");
}

Card LadderCard(const LoadedRun& loaded) {
  Card card;
  card.question = "What would each resource allow alone?";
  const analysis::Statements& statements = loaded.statements;
  if (!statements.model || !statements.bottleneck) {
    card.empty = "Without a model of the pipeline no resource has a rate.";
    return card;
  }
  const analysis::PipelineModel& model = *statements.model;
  const analysis::Finding& first = statements.bottleneck->findings[0];
  if (!std::isfinite(first.limit.bound)) {
    card.empty = "Nothing that was measured limits the rate.";
    return card;
  }
  card.answer =
      fmt::format("{} allow{} {}", SentenceStart(first.limit),
                  first.limit.Is(analysis::kCoresLimit) ? "" : "s", RateWord(first.limit.bound));
  if (HasTrainer(model) && !first.limit.Is(analysis::kConsumerLimit)) {
    card.answer +=
        fmt::format("; the trainer could take {}", RateWord(1 / model.demands().consumer_s));
  }
  card.answer += ".";
  card.read = {
      "A dot is the rate that one resource would sustain if nothing else limited. Its band is the "
      "90 % interval.",
      "The lowest one limits. A stage is limited by its threads, CPU time by the cores: they are "
      "two rows.",
      "The scale is logarithmic."};
  return card;
}

HR_CARD("ladder", LadderCard);

}  // namespace
}  // namespace headrace::dashboards
