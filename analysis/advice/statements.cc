#include "analysis/advice/statements.h"

#include "analysis/model/bottleneck.h"
#include "base/error.h"

namespace headrace::analysis {
namespace {

// Where each of three opinions is another, none is to be acted on.
void Doubt(const Differential& differential, Bottleneck* bottleneck) {
  if (differential.disagreement.empty() || bottleneck->disagreement.empty()) return;
  if (!differential.against_witness) return;
  bottleneck->verdict = Verdict::kUndecided;
  bottleneck->unexplained = true;
  bottleneck->measure =
      "the costs, the waits and queues, and the runs with and without input each point "
      "elsewhere: record all of them again, longer and with less other load on the machine";
}

std::optional<PlannedRate> PlannedOf(const RunView& run, const PipelineModel* model) {
  if (!run.prediction || run.prediction->predicted <= 0) return std::nullopt;
  const Real observed = model != nullptr ? Real(model->demands().rate) : run.prediction->observed;
  if (!observed || *observed <= 0) return std::nullopt;
  return PlannedRate{run.prediction->predicted, run.prediction->low, run.prediction->high,
                     *observed};
}

}  // namespace

Statements MakeStatements(const RunView& run) {
  Statements statements;
  statements.doubts = FindDoubts(run);
  if (run.run.kind == "ceiling") {
    statements.withheld =
        "this run repeated one batch to measure the consumer without input; it says nothing of the "
        "pipeline by itself";
    return statements;
  }
  if (run.operators.empty()) statements.outside = LookFromOutside(run);
  try {
    statements.model = std::make_unique<PipelineModel>(run);
    statements.predictor = std::make_unique<Predictor>(*statements.model);
    statements.bottleneck = FindBottleneck(*statements.predictor);
    statements.differential = CompareSiblings(*statements.model, *statements.bottleneck);
    Doubt(*statements.differential, &*statements.bottleneck);
    statements.allocation = Allocate(*statements.predictor, Budget{});
  } catch (const Error& error) {
    if (error.code() != ExitCode::kInconclusive) throw;
    statements.withheld = error.fact();
  }
  statements.planned = PlannedOf(run, statements.model.get());
  return statements;
}

}  // namespace headrace::analysis
