// A part of a run as a run of its own: the windows in which certain settings were in force, or
// those between two times, joined together. Analysis can then treat that part like any run.
#pragma once
#include <cstddef>
#include <cstdint>
#include <vector>

#include "analysis/run/run_view.h"

namespace headrace::analysis {

// `windows`: indices into run.windows, ascending. Counters are those of the windows; figures that
// are recorded for the whole run only (CPU time outside the stages, what other processes take of
// the cores, use of the network) are taken to be as in the whole run, for each step or second.
// Resident memory is the run's latest. Parallelism and capacities stay at the run's last values; a
// caller that knows better must set them. The slice has no epochs, no processes and no stacks.
RunView SliceOf(const RunView& run, const std::vector<size_t>& windows);

// From when to when a part of a run is, since the run began.
struct RunTimes {
  int64_t start_ns = 0, end_ns = INT64_MAX;
};

// The part of the windows that lie wholly between two times. `times` becomes where the first of
// them begins and the last ends. Throws Error kInconclusive where there is none.
RunView PartOf(const RunView& run, RunTimes* times);

}  // namespace headrace::analysis
