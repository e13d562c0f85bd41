#include "experiments/comparison_terms.h"

#include <optional>
#include <utility>

#include "base/error.h"

namespace headrace::experiments {
namespace {

std::vector<const analysis::RunView*> PointersTo(const std::vector<analysis::RunView>& views) {
  std::vector<const analysis::RunView*> pointers;
  for (const analysis::RunView& view : views) pointers.push_back(&view);
  return pointers;
}

}  // namespace

void CheckConditions(const ComparisonTerms& terms, const dashboards::ComparedRuns& runs,
                     const analysis::IntendedDifference& intended,
                     dashboards::ComparisonNotes* notes) {
  if (runs.of_one_run()) return;  // nothing differs
  const std::vector<const analysis::RunView*> a = PointersTo(runs.a), b = PointersTo(runs.b);
  const analysis::Comparability found = analysis::CompareConditions(a, b, intended);
  if (found.refused() && !terms.force) {
    throw Error(ExitCode::kBadData, found.Refusal(), "",
                "--force compares anyway, and marks the page");
  }
  dashboards::NoteConditions(found, runs, notes);
}

dashboards::ComparisonPage MakeComparisonPage(const ComparisonTerms& terms,
                                              const analysis::ComparisonInput& input,
                                              const analysis::Comparison& comparison,
                                              const dashboards::ComparedRuns& runs,
                                              dashboards::ComparisonNotes notes) {
  dashboards::NoteOutliers(input, comparison, runs, &notes);
  dashboards::NoteOtherLoad(runs, input.unit, comparison.metrics[0], &notes);
  if (input.unit == analysis::ComparedUnit::kBlock) dashboards::NoteLimits(runs, &notes);
  dashboards::NoteGates(terms.gates, comparison, &notes);
  std::optional<dashboards::Section> why =
      dashboards::NoteWhy(comparison, runs, input.unit, &notes);
  return {input, comparison, std::move(notes), std::move(why)};
}

}  // namespace headrace::experiments
