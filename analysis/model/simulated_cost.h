// SimulatedCost: what a firing costs in one operator of a simulation, of mean 1.
#pragma once
#include <cstdint>

#include "analysis/statistics/statistics.h"

namespace headrace::analysis {

class SimulatedCost {
 public:
  // Of coefficient of variation `cv`. Where `slow` is over 0, a share `slow` of the firings costs
  // more and all others alike; where no two costs have that cv, and with 0, costs are lognormal.
  // `stream`: which of its numbers Draw(firing) takes.
  SimulatedCost(double cv, double slow, uint64_t stream);

  // By chance.
  double Draw(Random* random) const;
  // Always the same for the same firing, so that what differs between two simulations is what was
  // changed and not chance (common random numbers: Law and Kelton, Simulation Modeling and
  // Analysis, the chapter on variance reduction). Comes again after 32,768 firings.
  double Draw(uint64_t firing) const;

 private:
  uint64_t offset_;
  double share_ = 0, fast_ = 1, slow_ = 1, sigma_ = 0;
};

}  // namespace headrace::analysis
