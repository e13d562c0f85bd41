// Sensitivity: what one more of each resource would be worth, and what would limit then; the rate
// over a number of threads or cores, with its knee.
//
// Each change is played alone by the Predictor, so that it knows what bounds do not: a row that is
// relieved seldom gains all that its bound says. Duals of the relaxed program are not used: at
// the corner where two rows bind they say something about neither.
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
  double gain = 0;    // of the rate at the settings; not below 0
  Interval interval;  // 90 %, of the gain
  Limit then;         // what limits after it
};

// Every row relieved alone, those that gain most first. A sequential
// stage, which no thread can relieve, is made cheaper instead; order has its queues and its window
// four times as long.
std::vector<Worth> Sensitivity(const PipelineModel& model, const Predictor& predictor,
                               const Variant& at, Step step);

// The same of these rows alone.
std::vector<Worth> SensitivityOf(const PipelineModel& model, const Predictor& predictor,
                                 const Variant& at, const std::vector<Limit>& rows, Step step);

struct Curve {
  std::vector<std::pair<int, double>> points;  // number, batches per second
  int knee = 1;  // the last number that still gained the worthwhile share over the one before
};
// Over 1, 2, ... `most`. More of something never loses: where `rate_at` dips, which is noise, the
// curve keeps the best before, so that the way back up is no gain.
Curve RateOver(int most, double worthwhile, const std::function<double(int)>& rate_at);
// Over 1, 2, ... `most` cores; other settings as given.
Curve RateOverCores(const Predictor& predictor, const Variant& at, int most,
                    double worthwhile = 0.02);
Curve RateOverThreads(const Predictor& predictor, const Settings& settings, size_t stage, int most,
                      double worthwhile = 0.02);

}  // namespace headrace::analysis
