// The page of a comparison: which side is faster, by how much, how sure that is, why, what to do
// next, and what could have been found; then the figures.
#pragma once
#include "analysis/comparison/comparison.h"
#include "dashboards/comparison_notes.h"
#include "dashboards/report/report.h"

namespace headrace::dashboards {

struct ComparisonPage {
  const analysis::ComparisonInput& input;
  const analysis::Comparison& comparison;
  const ComparisonNotes& notes;
  const Section* attribution = nullptr;  // null: nothing can be said, or the runs are gone
};

// For RenderText and RenderMarkdown.
Report MakeComparisonReport(const ComparisonPage& page);

}  // namespace headrace::dashboards
