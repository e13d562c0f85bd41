// Allocation: the settings to change, found by an integer program over the model, and what they
// gain.
//
// Objectives in order: throughput up to what the consumer can use (or a target rate); then fewest
// changed knobs; then fewest threads. Rows: stages p_i >= (c_i + b_i) X, cores, memory of queues
// and elements in work, locks and devices, the consumer, sequential stages.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "analysis/bottleneck.h"
#include "analysis/program.h"

namespace headrace::analysis {

struct Budget {
  std::optional<double> cores;           // none: what the run had
  std::optional<uint64_t> memory_bytes;  // none: the run's own limit
  std::optional<double> target;          // batches per second; none: as many as possible
  int max_threads = 0;                   // per stage; 0: max(8, 4 per core, what it has)
};

// The core of Allocate: thread counts for the stages of a pipeline.
struct ChainProblem {
  std::vector<std::string> names;    // of the stages, for the text; may be empty
  std::vector<double> stage_s;       // service time per batch
  std::vector<int> now;              // threads now
  std::vector<int> max_threads;      // per stage
  std::vector<double> thread_bytes;  // memory of one more thread of the stage
  double fixed_bytes = 0;            // memory whatever the threads
  double memory_bytes = 0;           // limit; infinite: none
  double shared_bound = 0;           // least of cores, locks, devices, consumer, target
  double headroom = 0;               // extra capacity wanted of each stage, soft
};
struct ChainSolution {
  double rate = 0;
  std::vector<int> threads;
};
// What was solved and how surely.
struct ChainReport {
  std::string words;      // both programs: the highest rate, then the fewest changes at it
  std::string lp;         // the first in LP format
  Proof proof;            // of the first
  double exact_rate = 0;  // by SolveMaxMin, which shares nothing with the solver
};
// Empty when nothing fits. Throws Error kFailure when the solver fails, or when the exact method
// finds another rate: then neither is to be trusted.
std::optional<ChainSolution> SolveChain(const ChainProblem& problem, ChainReport* report = nullptr);

struct Change {
  std::string knob;  // "decode.parallelism", "decode.queue"
  int from = 0, to = 0;
  std::string why;
  double gain = 0;                     // of the plan's rate against the plan without this change
  std::optional<double> memory_bytes;  // what it adds, queues full
};

struct Allocation {
  Settings settings;
  std::vector<Change> changes;
  double now = 0;               // batches per second observed
  double predicted = 0;         // batches per second with the changes
  Interval predicted_interval;  // 90 %
  Interval gain_interval;       // of predicted / now - 1
  double promise = 0;           // the rate that nine of ten such plans reach
  // That it is slower than what runs now; none where it is what runs now.
  std::optional<double> slower_probability;
  double rows_per_batch = 0;
  Limit limited_by;       // what limits then
  double next_bound = 0;  // the rate the second-tightest row would allow then
  Limit next;
  std::optional<double> memory_bytes;         // queues and elements in work, with the changes
  std::optional<double> memory_change_bytes;  // against now
  ChainReport program;
};

// Throws Error kInconclusive when no settings satisfy the budget; the message says which budget and
// by how much.
Allocation Allocate(const PipelineModel& model, const Budget& budget);

}  // namespace headrace::analysis
