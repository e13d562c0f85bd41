// Phases of a run: which of its windows show the pipeline at work, and which its start, its end and
// what lies between.
#pragma once
#include <cstddef>
#include <utility>
#include <vector>

namespace headrace::analysis {

// The windows [first, last) between start and end, of the steps a second in each window. Start and
// fill are over at the first window that reaches four fifths of the typical rate, and the drain
// begins after the last that does; a window in between belongs to the phase whatever its rate.
// Where five are left, the window at each end is left out, as it holds a part of the fill or of the
// end.
std::pair<size_t, size_t> SteadyRange(const std::vector<double>& rates);

}  // namespace headrace::analysis
