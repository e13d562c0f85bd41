// Sums of counters over windows. What was not measured in one of them is not known of the sum.
#pragma once
#include "analysis/run/run_view.h"

namespace headrace::analysis {

// `first`: of the windows; `sum` then becomes `value`, and of an operator's counters those that may
// be unmeasured do, as the others begin at 0.
void Add(Count* sum, const Count& value, bool first);
void Add(OperatorCounters* sum, const OperatorCounters& x, bool first);

// c, or where it is not told apart the middle of what it lies between; empty: not measured.
Count LikelyCpuNs(const OperatorCounters& op);

}  // namespace headrace::analysis
