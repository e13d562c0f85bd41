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

#include "analysis/program/program.h"

namespace headrace::analysis {

// One way to run a stage.
struct StageChoice {
  int threads = 1;
  int queue = 0;       // 0: the queue's length is a column of its own
  double workers = 1;  // threads' worth of work it does: fewer than `threads` where order waits
  double bytes = 0;    // of elements in work, and in the queue where `queue` is given
};

// A stage of a tree towards the consumer.
struct HostStage {
  std::string name;
  double service_s = 0;          // c + b of one batch
  double cpu_s = 0;              // c of it
  std::optional<size_t> output;  // the stage that takes from it; none: the consumer
  std::optional<size_t> set;     // the mode set that its choices depend on
  std::vector<std::vector<StageChoice>> choices;  // by mode of the set; one list without a set
  int threads_now = 1;
  // Of the queue behind it, where no choice says.
  int queue_now = 1, queue_least = 1;
  double element_bytes = 0;
};

struct Mode {
  int value = 1;
  double bytes = 0;  // memory that it takes besides that of choices
};
// One of the modes holds.
struct ModeSet {
  std::string name;  // "pipeline.reorder_window", "copies of decode"
  std::vector<Mode> modes;
  size_t now = 0;
};

// What all stages share: `servers` seconds of it pass each second.
struct Capacity {
  std::string name;
  double servers = 1;
  double other_s = 0;           // per batch, whatever is cached
  std::vector<double> stage_s;  // per batch, of each stage
};

struct HostTier {
  std::string name;
  double budget_bytes = 0;
  bool memory = false;  // its content counts in the memory row
};

// A stage's output kept in a tier: all of it at w = 1.
struct CacheSite {
  size_t stage = 0, tier = 0;
  double bytes = 0;                          // of an epoch
  double read_s = 0, write_s = 0;            // of the stage's threads
  bool cpu = true;                           // they compute then
  double tier_read_s = 0, tier_write_s = 0;  // of the tier's one device; 0: it has none
};

struct HostProblem {
  std::vector<HostStage> stages;
  std::vector<ModeSet> sets;
  std::vector<Capacity> capacities;
  double cores = 0;        // infinite: not known
  double other_cpu_s = 0;  // of the process, of no stage
  double least_s = 0;      // seconds of a batch that are of no use to undercut: consumer, target
  std::vector<HostTier> tiers;
  std::vector<CacheSite> sites;
  bool one_cache = false;   // the pipeline has room for one in all
  double epochs = 0;        // 0: not known: the rate from the second epoch on counts
  double fixed_bytes = 0;   // memory whatever is chosen
  double memory_bytes = 0;  // limit; infinite: none
  double headroom = 0;      // extra capacity wanted of each stage, soft
  double yielded = 1e-7;    // share of the highest rate that the later objectives may give away
  std::optional<double> price_per_core_hour, watts_per_core;
};

struct HostSolution {
  double batch_s = 0;               // T; from the second epoch on where there is a cache
  double fill_s = 0;                // T of the first epoch; equal to batch_s without a cache
  double average_s = 0;             // over the epochs; batch_s where they are not known
  std::vector<size_t> modes;        // of each set
  std::vector<StageChoice> stages;  // the choice of each stage, its queue filled in
  std::vector<double> kept;         // share, of each site
  double cores = 0;                 // busy in the busier phase; bought, where there is a price
  std::optional<double> watts;      // mean over the epochs
};

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

// What `solution` (modes, stages, kept) gives, by the rows alone: fills in batch_s, fill_s,
// average_s and cores. False when it is over the memory or a tier's budget, or keeps twice on a
// path. The witness of the program in tests.
bool Evaluate(const HostProblem& problem, HostSolution* solution);

}  // namespace headrace::analysis
