// The first steps of a training program, where it computes far longer than in nearly all later
// ones: it sets up its device, loads or compiles kernels, tries algorithms. None of that is work
// for batches.
#pragma once
#include <cstddef>

#include "analysis/run/run_view.h"

namespace headrace::analysis {

// Of the windows [first, last): behind the last that holds such a step; `first` where there is
// none, or where too little of the run would be left. A step is counted with all its time in the
// window in which it ends.
size_t EndOfFirstSteps(const RunView& run, size_t first, size_t last);

}  // namespace headrace::analysis
