// Allocation: the settings to change, and the outputs to keep in a cache, found by one integer
// program over the model (host_program.h), and what they gain.
//
// What the program does not know (variance, what shared cores and finite queues cost) is then
// searched by prediction from its solution; where the prediction of a plan without a cache is as
// good, there is none.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "analysis/bottleneck.h"
#include "analysis/cache_choice.h"
#include "analysis/host_program.h"

namespace headrace::analysis {

struct Budget {
  std::optional<double> cores;           // none: what the run had
  std::optional<uint64_t> memory_bytes;  // none: the run's own limit
  std::optional<double> target;          // batches per second; none: as many as possible
  int max_threads = 0;                   // per stage; 0: max(8, 4 per core, what it has)
  std::optional<CacheQuestion> cache;    // none: no output may be kept
  bool one_cache = false;                // the pipeline has room for one in all
  std::optional<double> price_per_core_hour, watts_per_core;
};

struct Change {
  std::string knob;  // "decode.parallelism", "decode.queue"
  int from = 0, to = 0;
  std::string why;
  double gain = 0;                     // of the plan's rate against the plan without this change
  std::optional<double> memory_bytes;  // what it adds, queues full
};

// An output that the plan keeps between epochs.
struct PlannedCache {
  size_t stage = 0, tier = 0;  // of the model, of the question
  double share = 0;            // of the elements
  double bytes = 0;            // of the tier
  // What it may grow to if elements come out larger: within the tier, and in memory within what
  // the memory budget leaves beside the rest of the plan.
  double most_bytes = 0;
};

struct Allocation {
  Settings settings;
  std::vector<PlannedCache> caches;
  std::vector<Scale> scales;  // what these make of the pipeline's costs, from the second epoch on
  std::vector<Change> changes;
  double now = 0;  // batches per second observed
  // Batches per second with the changes; with a cache from the second epoch on, and in the first.
  double predicted = 0;
  std::optional<double> predicted_fill;
  std::optional<double> now_total_s, total_s;  // of the question's epochs, as it is and planned
  Interval predicted_interval;                 // 90 %
  Interval gain_interval;                      // of predicted / now - 1
  // Whether the plan is to be advised: it changes something, and its interval does not hold "no
  // gain" (or it is what a budget forces). Otherwise a comparison decides (analysis/next_step).
  bool shown() const {
    return !(changes.empty() && caches.empty()) &&
           !(gain_interval.low <= 0 && gain_interval.high >= 0);
  }
  double promise = 0;  // the rate that nine of ten such plans reach
  // That it is slower than what runs now; none where it is what runs now.
  std::optional<double> slower_probability;
  double rows_per_batch = 0;
  Limit limited_by;       // what limits then
  double next_bound = 0;  // the rate the second-tightest row would allow then
  Limit next;
  std::optional<double> memory_bytes;         // queues and elements in work, with the changes
  std::optional<double> memory_change_bytes;  // against now
  double cores_used = 0;  // by the program, at its rate; whole and bought where they have a price
  std::optional<double> watts;  // of those in use
  std::string no_copies;        // why the program has no copies of subgraphs to choose
  HostReport program;
  HostSolution solution;  // of the program, before the search
};

// Throws Error kInconclusive when no settings satisfy the budget; the message says which budget and
// by how much.
Allocation Allocate(const PipelineModel& model, const Budget& budget);

}  // namespace headrace::analysis
