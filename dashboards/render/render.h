// Report -> one format each. No renderer knows a section.
#pragma once
#include <cstdint>
#include <string>

#include "analysis/run/run_view.h"
#include "dashboards/report/report.h"

namespace headrace::dashboards {

struct TextOptions {
  int width = 100;          // columns; tables drop columns from the right to fit, sentences wrap
  bool ascii = true;        // only ASCII characters
  bool color = false;       // escape sequences of colour, for a terminal
  bool first_only = false;  // the first page alone, in at most 24 lines
};

std::string RenderText(const Report& report, const TextOptions& options);
std::string RenderMarkdown(const Report& report);
// One page that needs nothing else: no script, no request; light or dark as the reader's system is.
// Shares have a bar beside their figure. All text is escaped.
std::string RenderHtml(const Report& report);
// One object, "schema": "headrace.report/1", SI base units (seconds, bytes, ratios): facts under
// their section's key, tables as arrays of objects under their own. A value with an interval has
// _low and _high beside it; an unavailable one is null with its reason under KEY_unavailable.
std::string RenderJson(const Report& report, const analysis::RunView& run);

}  // namespace headrace::dashboards
