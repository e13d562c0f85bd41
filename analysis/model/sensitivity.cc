#include "analysis/model/sensitivity.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "analysis/model/limits/bounds.h"

namespace headrace::analysis {
Curve RateOver(int most, double worthwhile, const std::function<double(int)>& rate_at) {
  Curve curve;
  double before = 0;
  for (int number = 1; number <= most; ++number) {
    // More need not be used: a dip is the simulation's noise.
    const double rate = std::max(before, rate_at(number));
    curve.points.emplace_back(number, rate);
    if (number > 1 && rate >= before * (1 + worthwhile)) curve.knee = number;
    before = rate;
  }
  return curve;
}

std::vector<Worth> Sensitivity(const PipelineModel& model, const Predictor& predictor,
                               const Variant& at, Step step) {
  const Demands demands = Apply(model, model.demands(), at.scales);
  return SensitivityOf(model, predictor, at, Bounds(model, demands, at.settings), step);
}

std::vector<Worth> SensitivityOf(const PipelineModel& model, const Predictor& predictor,
                                 const Variant& at, const std::vector<Limit>& rows, Step step) {
  std::vector<Worth> worths;
  const double before = predictor.Rate(at);
  for (const Limit& limit : rows) {
    if (!std::isfinite(limit.bound)) continue;
    const Relief relief = limit.kind->Relieve(model, at, limit, step);
    const auto& [settings, scales] = relief.variant;
    Worth worth;
    worth.limit = limit;
    worth.what = relief.what;
    // More of something need not be used: less than nothing is the simulation's noise.
    worth.rate = std::max(predictor.Rate(relief.variant), before);
    worth.gain = worth.rate / before - 1;
    worth.interval = predictor.Gain(at, relief.variant, worth.gain);
    worth.interval.low = std::max(0.0, worth.interval.low);
    const Demands relieved = Apply(model, model.demands(), scales);
    const std::vector<Limit> then = Bounds(model, relieved, settings);
    worth.then = then[BindingRow(model, relieved, then)];
    worths.push_back(std::move(worth));
  }
  std::stable_sort(worths.begin(), worths.end(),
                   [](const Worth& a, const Worth& b) { return a.gain > b.gain; });
  return worths;
}

Curve RateOverCores(const Predictor& predictor, const Variant& at, int most, double worthwhile) {
  return RateOver(most, worthwhile, [&](int cores) {
    Variant changed = at;
    changed.settings.cores = cores;
    return predictor.Rate(changed);
  });
}

Curve RateOverThreads(const Predictor& predictor, const Settings& settings, size_t stage, int most,
                      double worthwhile) {
  return RateOver(most, worthwhile, [&](int threads) {
    Settings changed = settings;
    changed.parallelism[stage] = threads;
    return predictor.Rate({changed, {}});
  });
}

}  // namespace headrace::analysis
