// What really limits a World, by intervention: each row is relieved alone and the World played
// again. What gains most is the bottleneck; rows that gain at least half as much belong to it.
#pragma once
#include <string>
#include <vector>

#include "tests/validation/world.h"

namespace headrace::validation {

struct Gain {
  std::string row;   // "s3", "table", "cores", "consumer", "order"
  double gain = 0;   // of the rate, as a share; mean of several plays
  double error = 0;  // its standard error
};

struct Truth {
  double rate = 0;
  std::vector<Gain> gains;  // largest first
  // Whether the row is among those that gain at least half of the largest.
  bool Holds(const std::string& row) const;
  double gap() const { return gains.empty() ? 0 : gains[0].gain; }
};

// Plays each relief for `batches` batches, several times over with other draws, each beside the
// World as it is with the same draws, as one play of a heavy-tailed World says little: a quarter
// more threads (one at least; a sequential station does its work in 0.8 of the time), a quarter
// more cores (one at least), a lock or device that serves in 0.8 of the time, a consumer that
// computes 0.8 of the time, ordered queues four times as deep with four times the window.
Truth FindTruth(const World& world, int64_t batches, uint64_t seed);

}  // namespace headrace::validation
