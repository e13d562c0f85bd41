// Hosts: random instances of the allocation program, and the truth about small ones by trying every
// way to run them. It shares no code with the program: what a way gives is worked out here again.
#pragma once
#include <cstddef>
#include <optional>

#include "analysis/program/host_program.h"
#include "tests/validation/dice.h"

namespace headrace::validation {

struct HostSize {
  size_t stages = 3;
  int threads = 4;   // most of a stage
  size_t sites = 4;  // places for a cache at most, over both tiers
  double with_copies = 0.3;
  double with_order = 0.3;  // ordered, with a window to choose
  double branches = 0.3;    // two sources that one stage joins
};

analysis::HostProblem DrawHost(const HostSize& size, Dice* dice);

// Least average seconds a batch over everything that may be chosen; empty when nothing fits. Shares
// are found by nested ternary search: what they minimise is convex.
std::optional<double> LeastSeconds(const analysis::HostProblem& problem);

// The number of changed knobs of a solution, as the last objective counts them.
int ChangesOf(const analysis::HostProblem& problem, const analysis::HostSolution& solution);
// The fewest over all ways that are no slower than these rates and use no more cores. Only for
// problems without sites.
std::optional<int> FewestChanges(const analysis::HostProblem& problem, double batch_s);

}  // namespace headrace::validation
