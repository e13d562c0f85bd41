// Attribution of runs without operator accounts (profiled commands): the unit is the run. Its time
// is that of the thread that all wait for, the consumer's or the only one that works, which is on a
// CPU, runnable, or waits for a cause; the change in rate is divided among these by their
// differences over the logarithmic mean of the times of both sides. Costs are those of threads of
// one name.
#pragma once
#include <span>

#include "analysis/comparison/attribution_rows.h"
#include "analysis/run/run_view.h"

namespace headrace::analysis {

// Runs must not have operators. Says in `unavailable` why there is nothing to say.
Attribution AttributeFromOutside(std::span<const RunView> a, std::span<const RunView> b,
                                 const AttributionOptions& options);

}  // namespace headrace::analysis
