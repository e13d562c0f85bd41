// HostChoices: which ways to run the stages can be part of an answer of the allocation program
// (host_program.h), and what a phase asks of them.
#pragma once
#include <optional>
#include <vector>

#include "analysis/program/host_problem.h"

namespace headrace::analysis {

using Lists = std::vector<std::vector<std::vector<StageChoice>>>;  // by stage, by mode

// All choices of the problem, ordered by workers.
Lists AllChoices(const HostProblem& problem);

// The choices that no other choice matches with less memory, ordered by workers. Where memory does
// not matter, only the one with most workers.
Lists Frontiers(const HostProblem& problem, bool memory_matters);

// Whether some combination of choices exceeds the memory limit.
bool MemoryMatters(const HostProblem& problem);

// The solution that the program starts from: the best of having no cache and of each cache alone,
// where the limiting stage gets more threads while memory is left. Empty when none of these fits;
// the program may still find one that does.
std::optional<HostSolution> FirstSolution(const HostProblem& problem, const Lists& frontiers);

// The choices of `frontiers` that can be part of an answer as fast as `known`, without those with
// more workers than could help.
Lists Pruned(const HostProblem& problem, const Lists& frontiers, const HostSolution& known);

// For objectives at given rates: the choices that reach these rates, with headroom, and the present
// choices.
Lists Reaching(const HostProblem& problem, double batch_s, double fill_s, bool memory_matters,
               const std::vector<double>* shares);

}  // namespace headrace::analysis
