// What a finite queue costs: the diffusion approximation for two stages with one bounded queue
// between them (Gelenbe 1975). It cross-checks the simulation, and it is the rule that chooses a
// queue's capacity.
#pragma once

namespace headrace::analysis {

// Share of the smaller of the two rates that is lost with `slots` places between a producer and a
// consumer. `load`: producer rate over consumer rate or its inverse, whichever is at most 1.
// `cv_a`, `cv_s`: coefficients of variation of the two costs. Within 0.025 of simulation for
// lognormal costs of cv <= 1 (tests/analysis/model/queue_loss_test.cc).
double QueueLoss(double load, double cv_a, double cv_s, int slots);

// Smallest capacity from `least` to `most` that loses at most `loss`.
int SufficientCapacity(double load, double cv_a, double cv_s, double loss, int least, int most);

}  // namespace headrace::analysis
