#include "analysis/prediction.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace headrace::analysis {
namespace {

constexpr double kInfinite = std::numeric_limits<double>::infinity();
constexpr double kCarriedOver = 0.7;  // of how far the simulation is from what was observed
constexpr double kSameError = 0.02;   // deviation of log(predicted / observed) at these settings
constexpr int64_t kSimulatedSteps = 2500;
constexpr int64_t kMoves = 30'000'000;  // of one simulation
constexpr size_t kDraws = 200;
constexpr uint64_t kSeed = 20240612;

// Of the rows that nothing can exceed. What order allows is itself an estimate by simulation.
double LeastBound(const std::vector<Limit>& limits) {
  double least = kInfinite;
  for (const Limit& limit : limits) {
    if (limit.kind != LimitKind::kOrder) least = std::min(least, limit.bound);
  }
  return least;
}

// Deviation of log(predicted / observed) at other settings, by what limits there: from the fitting
// seeds of the validation bench.
double ErrorOf(LimitKind kind) {
  switch (kind) {
    case LimitKind::kCores:
      return 0.09;
    case LimitKind::kOrder:
      return 0.08;
    case LimitKind::kLock:
      return 0.065;
    default:
      return 0.05;
  }
}

}  // namespace

Predictor::Predictor(const PipelineModel& model)
    : model_(model), draws_(BootstrapDemands(model, kDraws, kSeed)) {
  const std::optional<double> simulated = Simulated(model.current());
  if (simulated && std::isfinite(*simulated) && *simulated > 0) {
    // A part of that is particular to the present settings.
    correction_ = std::clamp(std::pow(model.demands().rate / *simulated, kCarriedOver), 0.8, 1.25);
  }
}

std::optional<double> Predictor::Simulated(const Settings& settings) const {
  int64_t moves = std::min(kMoves, moves_);
  const int64_t given = moves;
  const std::optional<double> rate =
      SimulatedRate(model_.Simulated(settings, model_.demands()), kSimulatedSteps, kSeed, &moves);
  moves_ -= given - std::max<int64_t>(0, moves);
  return rate;
}

bool Predictor::IsCurrent(const Settings& settings) const {
  const Settings& current = model_.current();
  return settings.parallelism == current.parallelism &&
         settings.queue_capacity == current.queue_capacity &&
         std::abs(settings.cores - current.cores) < 1e-9;
}

double Predictor::Rate(const Settings& settings) const {
  const double least = LeastBound(Bounds(model_, model_.demands(), settings));
  const std::optional<double> simulated = Simulated(settings);
  return simulated ? std::min(least, *simulated * correction_) : least;
}

Prediction Predictor::Predict(const Settings& settings) const {
  Prediction prediction;
  const bool current = IsCurrent(settings);
  prediction.rate = current ? model_.demands().rate : Rate(settings);
  prediction.limits = Bounds(model_, model_.demands(), settings);
  prediction.binding = BindingRow(model_, model_.demands(), prediction.limits);
  const double least = LeastBound(prediction.limits);
  std::vector<double> ratios;
  for (const Demands& draw : draws_) {
    if (std::isfinite(least)) ratios.push_back(LeastBound(Bounds(model_, draw, settings)) / least);
  }
  if (ratios.empty()) ratios.push_back(1);
  const Interval sampled = CentralInterval(ratios, 0.9);
  const double prior = current ? kSameError : ErrorOf(prediction.limits[prediction.binding].kind);
  const auto widen = [&](double ratio, double sign) {
    const double half = std::abs(std::log(std::max(ratio, 1e-6)));
    return prediction.rate * std::exp(sign * std::hypot(half, 1.645 * prior));
  };
  // However wrong the rest, the rate cannot exceed the bound.
  const double ceiling = std::max(prediction.rate, least * std::max(1.0, sampled.high));
  prediction.interval = {widen(sampled.low, -1), std::min(widen(sampled.high, 1), ceiling)};
  return prediction;
}

}  // namespace headrace::analysis
