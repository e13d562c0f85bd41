// When the pipeline ran: a program that loads its libraries, or ends, runs none.
#pragma once
#include <cstddef>
#include <vector>

#include "analysis/outside/slices.h"
#include "analysis/outside/units.h"
#include "analysis/run/run_view.h"

namespace headrace::analysis {

// Of the slices `all`, in order, those in which the consumer exchanges with others; all of them
// where that is never seen. `consumer`: index of its group.
std::vector<size_t> Steady(const Outside& out, const Slices& slices, size_t consumer,
                           const std::vector<size_t>& all);

// Of these those between the first and the last use of a device that the run is known to use, as
// nothing is trained outside of it.
std::vector<size_t> WithDevice(const RunView& run, const Slices& slices,
                               const std::vector<size_t>& all);

}  // namespace headrace::analysis
