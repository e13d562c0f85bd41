// A comparison as JSON: what --json prints, and what is stored beside the runs so that the same
// page can be shown again.
#pragma once
#include <string>

#include "analysis/comparison/comparison.h"
#include "dashboards/comparison.h"

namespace headrace::dashboards {

// One object, "schema": "headrace.compare/1", SI base units. What is not known is null, with its
// reason beside it.
std::string ComparisonJson(const ComparisonPage& page);

// The verdict as the JSON and the database have it: "faster", "slower", "same" or "cannot_tell".
std::string VerdictKey(const analysis::Comparison& comparison);

// Reads back the input and the notes from what ComparisonJson wrote; analysis::Compare recomputes
// the figures. Throws Error kBadData, naming `where`, for anything else.
struct StoredComparison {
  analysis::ComparisonInput input;
  ComparisonNotes notes;
};
StoredComparison ReadComparison(const std::string& json, const std::string& where);

}  // namespace headrace::dashboards
