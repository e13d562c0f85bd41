// Statements: all that analysis says about one run, computed once and shared by report and plan.
#pragma once
#include <memory>
#include <optional>
#include <string>

#include "analysis/allocation.h"
#include "analysis/outside.h"

namespace headrace::analysis {

struct Statements {
  std::unique_ptr<PipelineModel> model;  // null when there is none; then `withheld` says why
  std::optional<Bottleneck> bottleneck;
  std::optional<Allocation> allocation;  // with the run's own budgets
  std::string withheld;                  // "too short for a verdict (...)"
  std::optional<Outside> outside;        // of a run without operators
};

// `run` must outlive the result. Never throws for a run that is merely too short or has no
// accounts.
Statements MakeStatements(const RunView& run);

}  // namespace headrace::analysis
