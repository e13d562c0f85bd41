// The terms on which two sides are compared, whichever way their runs came about, and the page that
// comes of it.
#pragma once
#include <vector>

#include "analysis/comparison/comparability.h"
#include "analysis/comparison/comparison.h"
#include "dashboards/comparison.h"
#include "dashboards/comparison_notes.h"

namespace headrace::experiments {

struct ComparisonTerms {
  double margin = 0.03;               // a smaller change counts as none
  std::vector<analysis::Gate> gates;  // what the page says of them is added to it
  bool force = false;                 // compares also what is not comparable; the page is marked
};

// Notes what is the same on both sides and what is not. Throws Error kBadData where figures of one
// say nothing of the other, unless the terms force it.
void CheckConditions(const ComparisonTerms& terms, const dashboards::ComparedRuns& runs,
                     const analysis::IntendedDifference& intended,
                     dashboards::ComparisonNotes* notes);

// The page of a comparison whose conditions are noted: with the other notes, and what explains the
// change.
dashboards::ComparisonPage MakeComparisonPage(const ComparisonTerms& terms,
                                              const analysis::ComparisonInput& input,
                                              const analysis::Comparison& comparison,
                                              const dashboards::ComparedRuns& runs,
                                              dashboards::ComparisonNotes notes);

}  // namespace headrace::experiments
