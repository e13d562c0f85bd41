#include "analysis/model/bootstrap_demands.h"

#include <algorithm>
#include <cmath>

#include "analysis/statistics/statistics.h"
#include "analysis/thresholds.h"

namespace headrace::analysis {
std::vector<Demands> BootstrapDemands(const PipelineModel& model, size_t draws, uint64_t seed) {
  Random random(seed), split(seed + 1);
  std::vector<Demands> result;
  const std::vector<size_t>& steady = model.steady_windows();
  const size_t block = steady.size() >= 12 ? 2 : 1;
  for (size_t draw = 0; draw < draws; ++draw) {
    Demands demands = model.demands();
    std::vector<double> places;
    if (!model.splits_operators()) {
      for (size_t i = 0; i < model.operators().size(); ++i) places.push_back(split.Uniform());
    }
    if (steady.size() >= 3) {
      std::vector<size_t> windows = BlockResample(steady.size(), block, random);
      for (size_t& window : windows) window = steady[window];
      demands = model.Estimate(windows, places);
    } else if (!places.empty()) {
      demands = model.Estimate(steady, places);
    }
    // Fewer windows say less of the spread, so the model's own error takes more of the interval.
    const double error = steady.size() >= 3 ? kModelError : 2 * kModelError;
    for (double& stage_s : demands.stage_s) stage_s *= std::exp(error * random.Normal());
    for (size_t r = 0; r < demands.resources.size(); ++r) {
      // A ceiling that was measured apart from the run is known less well.
      const ResourceModel& row = model.resources()[r];
      const double of_row =
          row.counted_s ? std::max(error, row.counted_error.value_or(kCeilingError)) : error;
      demands.resources[r].hold_s *= std::exp(of_row * random.Normal());
    }
    demands.cpu_s *= std::exp(error * random.Normal());
    // How long the consumer waited for a core inside its step may not be known.
    if (demands.consumer_most_s > demands.consumer_least_s && demands.consumer_least_s > 0) {
      demands.consumer_s = demands.consumer_least_s +
                           random.Uniform() * (demands.consumer_most_s - demands.consumer_least_s);
    }
    demands.consumer_s *= std::exp(0.5 * error * random.Normal());
    if (model.cores_contended()) demands.others_yield = model.OthersYield(random.Uniform());
    result.push_back(std::move(demands));
  }
  return result;
}

}  // namespace headrace::analysis
