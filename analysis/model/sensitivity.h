// Sensitivity: the gain from one more of each resource, and what would limit it next; and the rate
// as a function of the number of threads or cores, with its knee.
//
// The Predictor predicts each change alone, because relieving a row seldom gains all that its bound
// says. Duals of the relaxed program are not used: where two rows bind at once, they describe
// neither.
#pragma once
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "analysis/model/limits/limit_kind.h"
#include "analysis/model/prediction.h"

namespace headrace::analysis {

struct Worth {
  Limit limit;        // the row that is relieved
  std::string what;   // "5 threads instead of 4", "10 % faster"
  double rate = 0;    // batches per second then
  double gain = 0;    // share of the present rate; not below 0
  Interval interval;  // 90 %, of the gain
  Limit then;         // what limits after it
};

// Relieves every row alone; rows that gain most come first. A sequential stage, which more threads
// cannot help, is made cheaper instead; order is relieved by queues and a window four times as
// long.
std::vector<Worth> Sensitivity(const PipelineModel& model, const Predictor& predictor,
                               const Variant& at, Step step);

// The same of these rows alone.
std::vector<Worth> SensitivityOf(const PipelineModel& model, const Predictor& predictor,
                                 const Variant& at, const std::vector<Limit>& rows, Step step);

struct Curve {
  std::vector<std::pair<int, double>> points;  // number, batches per second
  int knee = 1;  // the last number that gained at least the `worthwhile` share over the one before
};
// The rate for 1, 2, ... `most` of something. More of it never loses: where `rate_at` dips, which
// is noise, the curve stays at its best value so far, so that rising again counts as no gain.
Curve RateOver(int most, double worthwhile, const std::function<double(int)>& rate_at);
// The rate for 1, 2, ... `most` cores, with the other settings as given.
Curve RateOverCores(const Predictor& predictor, const Variant& at, int most,
                    double worthwhile = 0.02);
Curve RateOverThreads(const Predictor& predictor, const Settings& settings, size_t stage, int most,
                      double worthwhile = 0.02);

}  // namespace headrace::analysis
