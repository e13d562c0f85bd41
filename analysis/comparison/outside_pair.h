// Attribution of runs without operator accounts (profiled commands): the unit is the run. Its time
// is that of the thread that all others wait for: the consumer's, or the only one that works. That
// thread is on a CPU, runnable, or waits for a cause. The change in rate is divided among these
// states by their differences over the logarithmic mean of both sides' times. Costs are summed over
// the threads of one name.
#pragma once
#include <span>

#include "analysis/comparison/attribution_rows.h"
#include "analysis/run/run_view.h"

namespace headrace::analysis {

// Runs must not have operators. Says in `unavailable` why there is nothing to say.
Attribution AttributeFromOutside(std::span<const RunView> a, std::span<const RunView> b,
                                 const AttributionOptions& options);

}  // namespace headrace::analysis
