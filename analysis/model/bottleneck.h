// Bottleneck: which row of the model limits the run, with what probability, and what limits next.
//
// Of the rows of analysis/model/limits the smallest binds. Windows are resampled (block bootstrap,
// fixed seed) and a row's probability is its share of the draws in which it binds. The rows that
// come close are then relieved one by one in simulation: where another than the smallest would gain
// clearly more (what variance, order and short queues cost is in no bound), that one is named, and
// less surely.
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
  // Its bound follows from that of the first row: a stage whose threads hold the lock that is to
  // blame, the order of a stage's elements. Beside the first row it is not listed as another.
  bool within_first = false;
  // Of the rate, by simulation, if this row alone were relieved by a quarter; empty where it was
  // not tried, as its bound is far away.
  std::optional<double> relief_gain;
  // The operator with most time in the limiting stage, or most CPU of all for cores, or most use of
  // the resource; index into model.operators().
  std::optional<size_t> culprit;
};

// The first row of kLimited and kConsumer has the smallest bound of all that are not within it.
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
  // What the observed rate stays below the smallest bound for; empty where it hardly does. "costs
  // vary by up to 95 % and queues hold 1 to 4 elements, which takes 33 % of the rate"
  std::string loss;
  // Second opinion, from waits and queues alone: the stage whose threads are occupied most while
  // its input is full and its output empty; the consumer when it hardly waits.
  std::optional<Limit> witness;
  std::string disagreement;  // empty when the witness agrees or has nothing to say
  // The smallest bound against the observed rate: over 1.25, something the model has no row for
  // costs time.
  double unexplained_ratio = 1;
  std::optional<Interval> stall_interval;  // 90 %
};

// Of the predictor's model.
Bottleneck FindBottleneck(const Predictor& predictor);
inline Bottleneck FindBottleneck(const PipelineModel& model) {
  return FindBottleneck(Predictor(model));
}

}  // namespace headrace::analysis
