// Allocation: the settings to change, and the outputs to keep in a cache, found by one integer
// program over the model (host_program.h), and what they gain.
//
// The program ignores variance and what shared cores and finite queues cost. So a search by
// prediction then improves its solution. If a plan without a cache is predicted to be as good, it
// has no cache.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "analysis/program/candidate.h"

namespace headrace::analysis {

struct Change {
  std::string knob;  // "decode.parallelism", "decode.queue"
  int from = 0, to = 0;
  std::string why;
  double gain = 0;                     // share of the rate that the plan gains by this change
  std::optional<double> memory_bytes;  // memory that it adds, with full queues
};

struct Allocation {
  Settings settings;
  std::vector<PlannedCache> caches;
  std::vector<Scale> scales;  // how the caches change the pipeline's costs from the second epoch on
  std::vector<Change> changes;
  double now = 0;  // batches per second observed
  // Batches per second with the changes. With a cache, `predicted` is from the second epoch on and
  // `predicted_fill` in the first.
  double predicted = 0;
  std::optional<double> predicted_fill;
  // Seconds for the epochs asked about: now and with the plan.
  std::optional<double> now_total_s, total_s;
  Interval predicted_interval;  // 90 %
  Interval gain_interval;       // 90 %, of predicted / now - 1
  double handing_over_s = 0;    // Prediction::handing_over_s of the plan
  // Whether the plan should be recommended: it changes something, and the interval of its gain does
  // not include 0 (a plan that a budget forces may be slower). Otherwise a comparison decides
  // (analysis/advice/next_step).
  bool shown() const {
    return !(changes.empty() && caches.empty()) &&
           !(gain_interval.low <= 0 && gain_interval.high >= 0);
  }
  // The stage whose threads the plan raises although nobody measured what its store gives at most:
  // the gain may then be none. Empty: the gain hangs on no such store.
  std::string unknown_store;
  double promise = 0;  // the rate that nine of ten such plans reach
  // Probability that the plan is slower than what runs now; none where it changes nothing.
  std::optional<double> slower_probability;
  double rows_per_batch = 0;
  Limit limited_by;       // what limits then
  double next_bound = 0;  // the rate that the second-smallest bound would then allow
  Limit next;
  std::optional<double> memory_bytes;         // of queues and elements in work, with the changes
  std::optional<double> memory_change_bytes;  // against now
  // Cores that the integer program uses at its rate; whole, bought ones where they have a price.
  double cores_used = 0;
  std::optional<double> watts;  // power of the cores in use
  std::string no_copies;        // why the program cannot choose copies of subgraphs
  HostReport program;
  HostSolution solution;  // the program's, before the search
};

// Throws Error kInconclusive when no settings satisfy the budget; the message says which budget and
// by how much.
Allocation Allocate(const Predictor& predictor, const Budget& budget);
inline Allocation Allocate(const PipelineModel& model, const Budget& budget) {
  return Allocate(Predictor(model), budget);
}

}  // namespace headrace::analysis
