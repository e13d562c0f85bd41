// HostChoices: which ways to run its stages can be part of an answer of the allocation program
// (host_program.h), and what a phase asks of them.
#pragma once
#include <optional>
#include <vector>

#include "analysis/program/host_program.h"

namespace headrace::analysis {

inline constexpr double kRound = 1e-9;   // of memory and rates that are equal but for rounding
inline constexpr double kSolver = 1e-6;  // of what the solver takes as equal

// What its memory row, in MiB, lets pass of bytes too much.
inline constexpr double kSolverBytes = kSolver * 1048576;

// The epochs that read a cache back, and the first, which fills it.
enum Phase { kWarm, kFill };

// Which sites lie at or behind each stage, on its way to the consumer.
std::vector<std::vector<size_t>> SitesBehind(const HostProblem& problem);

// The largest share of a site that its tier's budget holds.
double MostKept(const HostProblem& problem, size_t site);

// Whether the phase exists: without a cache there is one, with one epoch only the filling.
bool Counts(const HostProblem& problem, Phase phase);

// Weight of a phase's T in what is least.
double WeightOf(const HostProblem& problem, Phase phase);

// The least and the most that one phase may ask of a stage, seconds of its threads. With `shares`
// of all sites given that is one value.
struct Range {
  double least = 0, most = 0;
};
Range LoadRange(const HostProblem& problem, const std::vector<size_t>& behind, size_t s,
                Phase phase, const std::vector<double>* shares = nullptr);

using Lists = std::vector<std::vector<std::vector<StageChoice>>>;  // by stage, by mode

// All choices, by workers.
Lists AllChoices(const HostProblem& problem);

// Those that no other does as well with less memory, by workers; the widest alone where memory does
// not matter.
Lists Frontiers(const HostProblem& problem, bool memory_matters);

// Whether anything that may be chosen is over the memory.
bool MemoryMatters(const HostProblem& problem);

// Whether the queue's length is no part of the stage's choice.
bool OwnQueue(const HostProblem& problem, const HostSolution& solution, size_t s);

double BytesOf(const HostProblem& problem, const HostSolution& solution);

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
