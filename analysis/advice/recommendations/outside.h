// Recommendations for a run that was seen from outside: the rules that can be judged by threads'
// times, causes of waits, block requests, pressure and memory. The other rules say what is missing.
#pragma once
#include <vector>

#include "analysis/advice/recommendations.h"

namespace headrace::analysis {

// All rules by number, those that fire first. There is no model to predict with, so `why` only
// gives an upper bound of the gain. Empty where `outside` has no verdict.
std::vector<Recommendation> RecommendFromOutside(const RunView& run, const Outside& outside);

}  // namespace headrace::analysis
