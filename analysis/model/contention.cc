#include "analysis/model/contention.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <tuple>
#include <utility>
#include <vector>

#include "analysis/model/limits/bounds.h"
#include "analysis/thresholds.h"

namespace headrace::analysis {
namespace {

// How many runs the noise above counts for.
constexpr double kNoiseRuns = 3;

void ScaleCpu(const PipelineModel& model, double factor, Demands* demands) {
  // The CPU part of the consumer's step, from the demands before anything is scaled.
  demands->consumer_s += model.ConsumerComputeCpu(*demands) * (factor - 1);
  for (Demands::Operator& op : demands->operators) op.cpu_s *= factor;
  for (size_t s = 0; s < model.stages().size(); ++s) {
    demands->stage_s[s] += demands->stage_cpu_s[s] * (factor - 1);
    demands->stage_cpu_s[s] *= factor;
  }
  demands->cpu_s *= factor;
  demands->unattributed_cpu_s *= factor;
  demands->consumer_cpu_s *= factor;
}

}  // namespace

double Contention::CostAt(double busy_cores) const {
  return 1 + each * std::max(0.0, std::min(busy_cores, most) - 1);
}

Contention Contention::Drawn(double normal) const {
  Contention drawn = *this;
  drawn.each = std::max(0.0, each + deviation * normal);
  return drawn;
}

namespace {

// What each busy core adds to the cost of work, and the deviation of that.
std::pair<double, double> FitEach(const std::vector<const LoadRow*>& loads, const LoadRow& own) {
  // The posterior over a grid. The cost on one core is whatever fits best; what runs at one load
  // differ by is learned from how far they are from the line.
  constexpr int kPoints = 400;
  constexpr double kMost = 0.4;
  const double n = static_cast<double>(loads.size());
  std::vector<double> logs;
  for (int i = 0; i < kPoints; ++i) {
    Contention tried;
    tried.each = kMost * (i + 0.5) / kPoints;
    double mean = 0, square = 0;
    for (const LoadRow* load : loads) {
      const double base =
          std::log(load->cpu_s_per_row / own.cpu_s_per_row / tried.CostAt(load->busy_cores));
      mean += base;
      square += base * base;
    }
    const double residual = std::max(0.0, square - mean * mean / n);
    const double prior = tried.each / kContentionFitDeviation;
    logs.push_back(-0.5 * (n - 1 + kNoiseRuns) *
                       std::log(residual + kNoiseRuns * kSameLoadNoise * kSameLoadNoise) -
                   0.5 * prior * prior);
  }
  const double best = *std::max_element(logs.begin(), logs.end());
  double weights = 0, sum = 0, squares = 0;
  for (int i = 0; i < kPoints; ++i) {
    const double each = kMost * (i + 0.5) / kPoints;
    const double weight = std::exp(logs[static_cast<size_t>(i)] - best);
    weights += weight;
    sum += weight * each;
    squares += weight * each * each;
  }
  const double mean_each = sum / weights;
  return {mean_each, std::sqrt(std::max(0.0, squares / weights - mean_each * mean_each))};
}

}  // namespace

Contention FitContention(const RunView& run, double host_cores) {
  Contention contention;
  const double others = std::max(1.0, host_cores - 1);
  contention.each = kContentionPrior;
  contention.deviation = kContentionPriorDeviation;
  contention.most = std::min(1 + others, kContentionSeen);
  const LoadRow* own = nullptr;
  for (const LoadRow& load : run.loads) {
    if (load.own) own = &load;
  }
  if (own == nullptr) return contention;
  std::vector<const LoadRow*> loads;
  for (const LoadRow& load : run.loads) {
    const double ratio = load.cpu_s_per_row / own->cpu_s_per_row;
    if (ratio > 1 / kOtherWork && ratio < kOtherWork) loads.push_back(&load);
  }
  double least = own->busy_cores, most = own->busy_cores;
  for (const LoadRow* load : loads) {
    least = std::min(least, load->busy_cores);
    most = std::max(most, load->busy_cores);
  }
  if (most - least < kLeastLoadSpread) return contention;
  std::tie(contention.each, contention.deviation) = FitEach(loads, *own);
  contention.runs = loads.size();
  contention.least_busy = least;
  contention.most_busy = most;
  contention.most = std::max(host_cores, kLoadExtrapolation * most);
  return contention;
}

std::string Words(const Contention& contention, double cost) {
  if (std::abs(cost - 1) < kContentionTold) return "";
  return fmt::format("work on the cores then costs {:.0f} % {} a batch, as {} cores are busy ({})",
                     100 * std::abs(cost - 1), cost > 1 ? "more" : "less",
                     cost > 1 ? "more" : "fewer",
                     contention.fitted()
                         ? fmt::format("fitted to {} runs at {:.1f} to {:.1f} busy cores",
                                       contention.runs, contention.least_busy, contention.most_busy)
                         : "a guess: no runs of this pipeline in the database were at other loads");
}

double ExpectedLoad(const PipelineModel& model, const Demands& demands, const Settings& settings) {
  const double rate = LeastBound(Bounds(model, demands, settings));
  if (!std::isfinite(rate)) return 0;
  return std::min(settings.cores, rate * demands.cpu_s) + model.cores_other().value_or(0);
}

Demands AtDepth(const PipelineModel& model, Demands demands, const Settings& settings) {
  for (const ResourceModel& resource : model.resources()) {
    if (!resource.curve) continue;
    const DeviceCurve& curve = *resource.curve;
    const size_t stage = model.operators()[curve.io].stage;
    const double now = curve.in_flight * std::max(1, model.current().parallelism[stage]);
    const double then = curve.in_flight * std::max(1, settings.parallelism[stage]);
    double& blocked_s = demands.operators[curve.io].blocked_s;
    const double longer_s = blocked_s * (curve.Slower(then, now) - 1);
    blocked_s += longer_s;
    demands.stage_s[stage] += longer_s;
  }
  return demands;
}

Demands AtLoad(const PipelineModel& model, Demands demands, const Settings& settings, double load,
               const Contention& contention) {
  if (!model.splits_cpu() || !model.cores_known() || contention.each <= 0) return demands;
  constexpr int kRounds = 20;
  constexpr double kClose = 1e-3;
  const double from = contention.CostAt(load);
  double now = 1;
  for (int i = 0; i < kRounds; ++i) {
    const double wanted = contention.CostAt(ExpectedLoad(model, demands, settings)) / from;
    if (std::abs(wanted / now - 1) < kClose) break;
    // Half the way: more load makes it dearer, which lessens the load.
    const double next = std::sqrt(now * wanted);
    ScaleCpu(model, next / now, &demands);
    now = next;
  }
  return demands;
}

}  // namespace headrace::analysis
