#include "analysis/statements.h"

#include "base/error.h"

namespace headrace::analysis {

Statements MakeStatements(const RunView& run) {
  Statements statements;
  statements.doubts = FindDoubts(run);
  if (run.operators.empty()) statements.outside = LookFromOutside(run);
  try {
    statements.model = std::make_unique<PipelineModel>(run);
    statements.bottleneck = FindBottleneck(*statements.model);
    statements.allocation = Allocate(*statements.model, Budget{});
  } catch (const Error& error) {
    if (error.code() != ExitCode::kInconclusive) throw;
    statements.withheld = error.fact();
  }
  return statements;
}

}  // namespace headrace::analysis
