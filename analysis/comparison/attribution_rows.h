// The last rows of an attribution, alike for runs with operators and without.
#pragma once
#include <string>

#include "analysis/comparison/attribution.h"

namespace headrace::analysis {

// Brings the rows of `result` into order and adds what they do not carry: a row for what the rate
// that the page is about has beyond `measured`, the logarithm of the rates that the other rows
// divide, called `options.outside` or else `outside`; and `unexplained`, named by the caller, with
// what is left of `measured` and its interval. The interval of `result.log_ratio` is around
// `measured` before, around the ratio asked for afterwards.
void CloseRows(const AttributionOptions& options, double measured, const std::string& outside,
               const std::string& unexplained_name, const SharePart& unexplained,
               Attribution* result);

}  // namespace headrace::analysis
