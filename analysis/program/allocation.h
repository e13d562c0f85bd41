// Allocation: the settings to change, and the outputs to keep in a cache, found by one integer
// program over the model (host_program.h), and what they gain.
//
// What the program does not know (variance, what shared cores and finite queues cost) is then
// searched by prediction from its solution; where the prediction of a plan without a cache is as
// good, there is none.
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
  double gain = 0;                     // of the plan's rate against the plan without this change
  std::optional<double> memory_bytes;  // what it adds, queues full
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
  // gain" (or it is what a budget forces). Otherwise a comparison decides
  // (analysis/advice/next_step).
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
Allocation Allocate(const Predictor& predictor, const Budget& budget);
inline Allocation Allocate(const PipelineModel& model, const Budget& budget) {
  return Allocate(Predictor(model), budget);
}

}  // namespace headrace::analysis
