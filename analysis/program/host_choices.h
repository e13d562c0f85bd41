// HostChoices: which ways to run its stages can be part of an answer of the allocation program
// (host_program.h), and what a phase asks of them.
#pragma once
#include <optional>
#include <vector>

#include "analysis/program/host_problem.h"

namespace headrace::analysis {

using Lists = std::vector<std::vector<std::vector<StageChoice>>>;  // by stage, by mode

// All choices, by workers.
Lists AllChoices(const HostProblem& problem);

// Those that no other does as well with less memory, by workers; the widest alone where memory does
// not matter.
Lists Frontiers(const HostProblem& problem, bool memory_matters);

// Whether anything that may be chosen is over the memory.
bool MemoryMatters(const HostProblem& problem);

// The best of no cache and of each one alone, the stage that limits widened while memory is left:
// what the program starts from. Empty when none fits; the program may still find one that does.
std::optional<HostSolution> FirstSolution(const HostProblem& problem, const Lists& frontiers);

// Of the frontiers: choices that can be part of an answer as fast as `known`, and no wider than is
// of use.
Lists Pruned(const HostProblem& problem, const Lists& frontiers, const HostSolution& known);

// For objectives at given rates: choices that reach them, with headroom, and the present ones.
Lists Reaching(const HostProblem& problem, double batch_s, double fill_s, bool memory_matters,
               const std::vector<double>* shares);

}  // namespace headrace::analysis
