// What a recording from outside holds, added up by groups of threads and by who woke whom, slice by
// slice of the run, so that slices can be drawn again and again.
#pragma once
#include <string>
#include <vector>

#include "analysis/outside/threads.h"
#include "analysis/run/run_view.h"

namespace headrace::analysis {

struct Slices {
  size_t num_groups = 0, num_edges = 0;
  std::vector<int64_t> index;  // [slice]: which of the run's it is
  double slice_s = 0;          // length of each
  double seen_s = 0;           // how long the threads' times were recorded
  std::string prefix;          // of the metrics that the times are from: "", "sampled_", "thread_"
  bool is_part = false;        // their probe was given up early, and nothing told the rest
  std::vector<std::vector<ThreadTimes>> times;  // [slice][group]
  std::vector<std::vector<double>> counts;      // [slice][edge]
  std::vector<std::vector<double>> waits;       // [slice][edge]; empty: not measured
};

struct Totals {
  std::vector<ThreadTimes> times;  // by group
  std::vector<double> waits;       // by edge, seconds
};

// Fills the kinds, groups, edges and knowledge of `seen`, and returns the slices of them.
Slices BuildSlices(const RunView& run, SeenThreads* seen);

// Sums the slices `drawn`. Where waits were not timed, the time blocked for a cause is shared out
// by wake-ups.
Totals Sum(const SeenThreads& seen, const Slices& slices, const std::vector<size_t>& drawn);

}  // namespace headrace::analysis
