// Recommendations for a run that was seen from outside: the rules that threads' times, causes of
// waits, block requests, pressure and memory can fire; of the others, what is missing.
#pragma once
#include <vector>

#include "analysis/advice/recommendations.h"

namespace headrace::analysis {

// All rules by number, those that fire first. There is no model to predict by: a gain is told as
// what it is at most, in `why`. Empty where `outside` has no verdict.
std::vector<Recommendation> RecommendFromOutside(const RunView& run, const Outside& outside);

}  // namespace headrace::analysis
