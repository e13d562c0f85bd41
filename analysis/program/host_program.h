// HostProgram: allocation within one host as one mixed integer linear program (program.h).
//
// It chooses all of these together: how every stage runs (its threads, and with them the rate that
// order leaves them), how long its queue is, one mode of each mode set (copies of a subgraph, the
// reorder window, rows of a batch), and what share of which stages' output is kept in which cache.
// Rows: each stage's threads, cores, locks and devices (also NIC and memory bandwidth, where they
// were measured), each cache's device, memory, one cache at most between a source and the consumer.
//
// The unknown is T = 1 / X, the seconds per batch, because that makes caches linear: if a share w
// is kept, all work up to the cache shrinks to (1 - w), and w times the reading is added. T times
// threads is not linear, so each way to run a stage is a column of its own. With a cache over E
// epochs, the first epoch fills it: both T and T_fill are unknowns, and (T_fill + (E - 1) T) / E is
// minimised.
//
// Objectives in order, each proven optimal before the next: the highest rate (P1); at that rate the
// fewest cores, or the least price (P2); the least power (P3); the fewest changes of knobs, with
// headroom where it can be had (P4; caches first, then the rest). The method builds on Plumber
// (MLSys 2022) and on what it leaves out.
//
// Seconds, bytes; costs are per batch.
#pragma once
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "analysis/program/host_problem.h"
#include "analysis/program/program.h"

namespace headrace::analysis {

// The solution of one objective.
struct SolvedObjective {
  std::string what;  // "seconds a batch, least"
  double value = 0;
  std::string unit;  // "s", "cores", "USD/h", "W", "points"
  Proof proof;
};
struct HostReport {
  std::vector<SolvedObjective> objectives;
  std::string words;                    // the programs in words
  std::string lp;                       // the first program in LP format
  std::optional<double> exact_batch_s;  // by SolveMaxMin, where its method applies
};

// Empty when nothing fits the memory. Throws Error kFailure when the solver fails, or when the
// exact method finds another rate: then neither is to be trusted.
std::optional<HostSolution> SolveHost(const HostProblem& problem, HostReport* report = nullptr);

// Raises the share that used caches keep, as far as the budgets allow and at most the share `loss`
// of the rate is lost. The program may keep just enough that the cache is no longer the only limit;
// with costs that vary, this would lose more than filling the cache does.
void FillCaches(const HostProblem& problem, double loss, HostSolution* solution);

}  // namespace headrace::analysis
