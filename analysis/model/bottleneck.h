// Bottleneck: which row of the model limits the run, with what probability, and what limits next.
//
// The row of analysis/model/limits with the smallest bound is the limit. Windows are resampled
// (block bootstrap, fixed seed), and a row's probability is the share of draws in which it is the
// smallest. Then the rows whose bounds come close are relieved one by one in simulation, because no
// bound contains what variance, order and short queues cost. If relieving another row gains clearly
// more than relieving the smallest, that row is named, with a lower probability.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "analysis/model/limits/limit.h"
#include "analysis/model/pipeline_model.h"
#include "analysis/model/prediction.h"
#include "analysis/statistics/statistics.h"

namespace headrace::analysis {

struct Finding {
  Limit limit;
  Interval bound_interval;  // 90 %
  double probability = 0;
  double utilisation = 0;  // observed rate / bound
  // Its bound follows from that of the first row: a stage whose threads hold the lock that is the
  // limit, the order of a stage's elements. It is not listed as a second limit.
  bool within_first = false;
  // Share of the rate that relieving this row alone by a quarter would gain, by simulation; empty:
  // not tried, because its bound is far above the smallest.
  std::optional<double> relief_gain;
  // The operator with most time in the limiting stage, or most CPU of all for cores, or most use of
  // the resource; index into model.operators().
  std::optional<size_t> culprit;
};

// With kLimited and kConsumer, findings[0] has the smallest bound of all rows that are not within
// it (Finding::within_first).
enum class Verdict : uint8_t {
  kLimited,   // findings[0] limits
  kConsumer,  // the consumer limits, and hardly waits: the pipeline keeps up
  kBalanced,  // findings[0] and [1] limit together
  kUndecided  // see `measure`
};
const char* VerdictName(Verdict verdict);

struct Bottleneck {
  Verdict verdict = Verdict::kUndecided;
  std::vector<Finding> findings;  // by probability, then by bound
  std::string measure;            // for kUndecided: what would decide it
  // For kUndecided: what was measured does not explain the rate, so no prediction from it holds.
  bool unexplained = false;
  // Why the instrumentation misses what limits; empty: it does not.
  std::string unseen;
  // Why the observed rate is below the smallest bound; empty where it hardly is. "costs vary by up
  // to 95 % and queues hold 1 to 4 elements, which takes 33 % of the rate"
  std::string loss;
  // Second opinion, from waits and queues alone: the stage whose threads are busiest while its
  // input queue is full and its output queue empty; the consumer if it hardly waits.
  std::optional<Limit> witness;
  std::string disagreement;  // empty when the witness agrees or has nothing to say
  // Smallest bound / observed rate. Over 1.25: something that the model has no row for costs time.
  double unexplained_ratio = 1;
  std::optional<Interval> stall_interval;  // 90 %
  // What would limit with the machine to itself, where other programs hold the cores that limit.
  std::optional<Limit> alone;
};

// Whether more than the row allows was observed: it is known badly, or of another pipeline. No
// estimate is. `rate`: batches per second, observed.
bool AllowsLess(const Limit& limit, double rate);

// Of the predictor's model.
Bottleneck FindBottleneck(const Predictor& predictor);
inline Bottleneck FindBottleneck(const PipelineModel& model) {
  return FindBottleneck(Predictor(model));
}

}  // namespace headrace::analysis
