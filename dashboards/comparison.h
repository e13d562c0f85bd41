// The page of a comparison: which side is faster, by how much, how sure that is, why, what to do
// next, and what could have been found; then the figures.
#pragma once
#include <optional>

#include "analysis/comparison/comparison.h"
#include "dashboards/comparison_notes.h"
#include "dashboards/report/report.h"

namespace headrace::dashboards {

struct ComparisonPage {
  analysis::ComparisonInput input;
  analysis::Comparison comparison;  // of `input`
  ComparisonNotes notes;
  // What NoteWhy returned; none also where the runs are gone.
  std::optional<Section> attribution = std::nullopt;
};

// For RenderText and RenderMarkdown.
Report MakeComparisonReport(const ComparisonPage& page);

}  // namespace headrace::dashboards
