// PipelineModel: what a batch might have cost in other recordings.
#include <algorithm>
#include <cmath>

#include "analysis/model/pipeline_model.h"
#include "analysis/statistics/statistics.h"
#include "analysis/thresholds.h"

namespace headrace::analysis {
namespace {

constexpr uint64_t kBootstrapSeed = 20240611;
// A longer course is resampled in blocks of windows that are added up beforehand.
constexpr size_t kMostBlocks = 120;

}  // namespace

// The steady windows, neighbours added up where there are many.
std::vector<WindowRow> PipelineModel::SteadyBlocks() const {
  const size_t together = (steady_.size() + kMostBlocks - 1) / kMostBlocks;
  std::vector<WindowRow> blocks;
  for (size_t first = 0; first < steady_.size(); first += together) {
    std::vector<const WindowRow*> windows;
    for (size_t i = first; i < std::min(first + together, steady_.size()); ++i) {
      windows.push_back(&run_->windows[steady_[i]]);
    }
    blocks.push_back(SumOf(windows));
  }
  return blocks;
}

const std::vector<Demands>& PipelineModel::Bootstrap() const {
  if (!bootstrap_.empty()) return bootstrap_;
  Random random(kBootstrapSeed), split(kBootstrapSeed + 1);
  const std::vector<WindowRow> blocks = SteadyBlocks();
  const bool resamples = blocks.size() >= 3;
  // Neighbours, which are mostly drawn together, added up once.
  std::vector<WindowRow> pairs;
  for (size_t b = 0; b + 1 < blocks.size(); ++b) {
    pairs.push_back(SumOf({&blocks[b], &blocks[b + 1]}));
  }
  // Fewer windows say less of the spread, so the model's own error takes more of the interval.
  const double error = resamples ? kModelError : 2 * kModelError;
  for (size_t draw = 0; draw < kBootstrapDraws; ++draw) {
    Demands demands = demands_;
    std::vector<double> places;
    if (!splits_operators_) {
      for (size_t i = 0; i < operators_.size(); ++i) places.push_back(split.Uniform());
    }
    if (resamples) {
      const std::vector<size_t> drawn =
          BlockResample(blocks.size(), blocks.size() >= 12 ? 2 : 1, random);
      std::vector<const WindowRow*> rows;
      for (size_t i = 0; i < drawn.size(); ++i) {
        const bool is_pair =
            i + 1 < drawn.size() && drawn[i] < pairs.size() && drawn[i + 1] == drawn[i] + 1;
        rows.push_back(is_pair ? &pairs[drawn[i]] : &blocks[drawn[i]]);
        if (is_pair) ++i;
      }
      demands = EstimateFrom(SumOf(rows), places);
    } else if (!places.empty()) {
      demands = EstimateFrom(steady_sum_, places);
    }
    for (double& stage_s : demands.stage_s) stage_s *= std::exp(error * random.Normal());
    for (size_t r = 0; r < demands.resources.size(); ++r) {
      // A ceiling that was measured apart from the run is known less well.
      const ResourceModel& row = resources_[r];
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
    if (cores_contended()) demands.others_yield = OthersYield(random.Uniform());
    bootstrap_.push_back(std::move(demands));
  }
  return bootstrap_;
}

}  // namespace headrace::analysis
