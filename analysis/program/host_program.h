// HostProgram: allocation within one host as one mixed integer linear program (program.h).
//
// It chooses together how every stage runs (threads, and with them what order leaves of their
// rate), how long its queue is, one mode of each mode set (copies of a subgraph, the reorder
// window, rows of a batch), and what share of which stages' output is kept in which cache. Rows:
// each stage's threads, cores, locks and devices (also NIC and memory bandwidth, where they were
// measured), each cache's device, memory, one cache at most between a source and the consumer.
//
// The unknown is T = 1 / X, seconds a batch, so that what a cache takes away is linear: a share w
// kept makes all work up to it (1 - w) of itself, plus w of the reading. T times threads is not
// linear; each stage's ways to run are columns of their own instead. With a cache over E epochs the
// first one fills it: both T and T_fill are unknowns, and (T_fill + (E - 1) T) / E is least.
//
// Objectives in order, each proven optimal before the next: the highest rate (P1); at that rate the
// fewest cores, or the least price (P2); the least power (P3); the fewest changes of knobs, with
// headroom where it can be had (P4; caches first, then the rest). Method: research on Plumber
// (MLSys 2022) and its gaps.
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

// One objective as it was solved.
struct SolvedObjective {
  std::string what;  // "seconds a batch, least"
  double value = 0;
  std::string unit;  // "s", "cores", "USD/h", "W", "points"
  Proof proof;
};
struct HostReport {
  std::vector<SolvedObjective> objectives;
  std::string words;                    // the programs
  std::string lp;                       // the first
  std::optional<double> exact_batch_s;  // by SolveMaxMin, where its method applies
};

// Empty when nothing fits the memory. Throws Error kFailure when the solver fails, or when the
// exact method finds another rate: then neither is to be trusted.
std::optional<HostSolution> SolveHost(const HostProblem& problem, HostReport* report = nullptr);

// Fills the caches that are in use as far as budgets go and at most that share of the rate is lost:
// where just so much is kept that another row binds as well, costs that vary lose more than that.
void FillCaches(const HostProblem& problem, double loss, HostSolution* solution);

}  // namespace headrace::analysis
