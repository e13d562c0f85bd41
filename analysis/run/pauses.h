// Pauses of a loader: now and then the trainer waits many times as long as a step takes, and in
// between next to nothing. A shard is opened, a file is downloaded, a buffer is filled anew.
#pragma once
#include <cstdint>
#include <optional>

#include "analysis/run/run_view.h"

namespace headrace::analysis {

struct Pauses {
  int64_t long_steps = 0, steps = 0;
  double usual_s = 0;  // median step
  double wait_s = 0;   // by how much the long steps are longer, on average

  double share() const { return static_cast<double>(long_steps) / static_cast<double>(steps); }
  // What they take of each step, on average.
  double lost_s() const { return share() * wait_s; }
};

// By the lengths of the run's steps. `starts`: how often workers were started or ended, which makes
// a step long as well. Empty: few steps are much longer than the rest, or many are, or they make
// little of the run, or the trainer computed in them.
std::optional<Pauses> FindPauses(const RunView& run, int64_t starts);

}  // namespace headrace::analysis
