// EpochEdges: what the ends of epochs cost a run.
#pragma once
#include <cstddef>
#include <string>
#include <vector>

#include "analysis/run/run_view.h"
#include "analysis/statistics/statistics.h"

namespace headrace::analysis {

// What the ends of epochs cost.
struct EpochEdges {
  size_t edges = 0;  // ends of epochs in the steady range
  // Rows lost at each, compared with the rate between the edges; below 0: gained.
  double lost_rows = 0;
  Interval lost_interval;  // 90 %
  double lost_ratio = 0;   // share of the rows that the rate between the edges would have given
  double lost_steps = 0;   // steps lost at each
  bool separated = false;  // they cost enough to be a phase of their own
  std::string unknown;     // why the figures above are not known; empty: they are
};

// Of the ends of epochs in the windows [first, last). Those that cost enough to be told apart are
// marked in `edge`, one value a window: 1 around the end of an epoch.
EpochEdges FindEpochEdges(const RunView& run, size_t first, size_t last, std::vector<char>* edge);

}  // namespace headrace::analysis
