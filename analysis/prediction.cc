#include "analysis/prediction.h"

#include <algorithm>
#include <boost/math/distributions/normal.hpp>
#include <cmath>
#include <limits>

namespace headrace::analysis {
namespace {

constexpr double kInfinite = std::numeric_limits<double>::infinity();
constexpr double kCarriedOver = 0.7;   // of how far the simulation is from what was observed
constexpr double kSameError = 0.02;    // deviation of log(predicted / observed) at these settings
constexpr double kShapeMatters = 0.5;  // a coefficient of variation
// By how much nearer, in the logarithm of the rate, another shape must be than lognormal costs.
constexpr double kShapeClearly = 0.03;
constexpr int64_t kShapeSteps = 20'000;
constexpr int64_t kSimulatedSteps = 2500;
constexpr int64_t kMoves = 30'000'000;  // of one simulation
constexpr double kNormal90 = 1.645;     // deviations that hold 90 % of a normal distribution
constexpr double kFullError = 0.2;      // of the logarithm: a change of rate that errs as any other
constexpr double kLeastError = 0.01;    // of it, where anything changes
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
double PriorErrorOf(LimitKind kind) {
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

// Absolute deviations that 20 runs would have shown, were the prior true: what is seen is added to
// them, and has replaced them once as many were seen.
constexpr size_t kPriorRuns = 20;
std::vector<double> PriorResiduals(double deviation) {
  const boost::math::normal_distribution<double> normal;
  std::vector<double> residuals;
  for (size_t i = 0; i < kPriorRuns; ++i) {
    const double level = 0.5 + 0.5 * (static_cast<double>(i) + 0.5) / double{kPriorRuns};
    residuals.push_back(deviation * boost::math::quantile(normal, level));
  }
  return residuals;
}

// The conformal quantile of `residuals`, as the deviation of a normal distribution that has it.
double ConformalDeviation(std::vector<double> residuals) {
  std::sort(residuals.begin(), residuals.end());
  const double seen = static_cast<double>(residuals.size());
  const size_t rank = static_cast<size_t>(std::ceil((seen + 1) * 0.9));
  return residuals[std::min(rank, residuals.size()) - 1] / kNormal90;
}

// With what predictions were seen to be wrong by on this machine: as a prior of twenty runs, until
// as many of the kind were seen; then the conformal quantile of theirs, whatever their
// distribution. One that was far off counts for much, but for no more than kMostSquared in the mean
// of squares; where more than a tenth were far off, the quantile says how far.
double ErrorOf(LimitKind kind, const std::vector<PredictionRow>& earlier) {
  constexpr double kMostSquared = 0.5;  // of a logarithm
  std::vector<double> residuals;
  for (const PredictionRow& row : earlier) {
    if (row.limited_by_kind != LimitKindName(kind) || !row.observed || row.other_pipeline) continue;
    const double residual = std::abs(std::log(*row.observed / row.predicted));
    if (std::isfinite(residual)) residuals.push_back(residual);
  }
  if (residuals.size() >= kPriorRuns) return ConformalDeviation(residuals);
  const double prior = PriorErrorOf(kind), seen = static_cast<double>(residuals.size());
  double squares = double{kPriorRuns} * prior * prior;
  for (const double residual : residuals) {
    squares += std::min(residual, kMostSquared) * std::min(residual, kMostSquared);
  }
  const double mean = std::sqrt(squares / (double{kPriorRuns} + seen));
  std::vector<double> pooled = PriorResiduals(prior);
  pooled.insert(pooled.end(), residuals.begin(), residuals.end());
  return std::max(mean, seen > 0 ? ConformalDeviation(pooled) : 0);
}

double HostCores(const PipelineModel& model) {
  const HostRow* total = model.run().FindHost("host_cores");
  return total != nullptr && total->mean_value ? *total->mean_value : model.cores_budget();
}

}  // namespace

Predictor::Predictor(const PipelineModel& model)
    : model_(model), contention_(FitContention(model.run(), HostCores(model))) {
  const auto sample = [&](const Demands& demands, const Contention& contention) {
    return Draw{demands, contention, ExpectedLoad(model, demands, model.current())};
  };
  middle_ = sample(model.demands(), contention_);
  Random random(kSeed);
  for (const Demands& demands : BootstrapDemands(model, kDraws, kSeed)) {
    draws_.push_back(sample(demands, contention_.Drawn(random.Normal())));
  }
  for (const LimitKind kind :
       {LimitKind::kConsumer, LimitKind::kCores, LimitKind::kStage, LimitKind::kLock,
        LimitKind::kDevice, LimitKind::kOrder, LimitKind::kThread}) {
    errors_[kind] = ErrorOf(kind, model.run().earlier_predictions);
  }
  ChooseShape();
  simulated_now_ = Simulated(model.current(), model.demands(), kSimulatedSteps);
  if (simulated_now_ && std::isfinite(*simulated_now_) && *simulated_now_ > 0) {
    // A part of that is particular to the present settings.
    correction_ =
        std::clamp(std::pow(model.demands().rate / *simulated_now_, kCarriedOver), 0.8, 1.25);
  }
}

std::optional<double> Predictor::Simulated(const Settings& settings, const Demands& demands,
                                           int64_t steps) const {
  SimulatedPipeline pipeline = model_.Simulated(settings, demands);
  for (SimulatedStage& stage : pipeline.stages) {
    for (SimulatedOperator& op : stage.operators) op.slow = slow_;
  }
  return SimulatedRate(pipeline, steps, kSeed, &moves_, kMoves);
}

// Windows tell how much elements vary, not how: whether all a little or few of them much, which is
// worth a lot where order or short queues matter. The shape is taken that comes closest to what was
// observed at the present settings.
void Predictor::ChooseShape() {
  const double observed = model_.demands().rate;
  double widest = 0;
  for (const StageModel& stage : model_.stages()) widest = std::max(widest, stage.cv);
  if (widest < kShapeMatters || !(observed > 0)) return;
  double least = kInfinite, chosen = 0;
  for (const double slow : {0.0, 0.1, 0.05, 0.2, 0.02}) {
    slow_ = slow;
    const std::optional<double> rate = Simulated(model_.current(), model_.demands(), kShapeSteps);
    if (!rate || !(*rate > 0)) continue;
    const double off = std::abs(std::log(*rate / observed)) + (slow > 0 ? kShapeClearly : 0);
    if (off >= least) continue;
    least = off;
    chosen = slow;
  }
  slow_ = chosen;
}

Demands Predictor::At(const Draw& draw, const Variant& variant) const {
  return AtLoad(model_,
                AtDepth(model_, Apply(model_, draw.demands, variant.scales), variant.settings),
                variant.settings, draw.load, draw.contention);
}

// Workers beside the consumer were not seen at work: what handing over their batches costs is not
// known.
double Predictor::ErrorAt(LimitKind kind, const Settings& settings) const {
  constexpr double kHandingOver = 0.15;
  bool first_workers = false;
  for (size_t s = 0; s < settings.parallelism.size(); ++s) {
    first_workers =
        first_workers || (model_.current().parallelism[s] <= 0 && settings.parallelism[s] > 0);
  }
  return first_workers ? std::hypot(errors_.at(kind), kHandingOver) : errors_.at(kind);
}

bool Predictor::IsCurrent(const Settings& settings) const { return settings == model_.current(); }

double Predictor::Rate(const Settings& settings, const std::vector<Scale>& scales) const {
  const Demands demands = At(middle_, {settings, scales});
  const double least = LeastBound(Bounds(model_, demands, settings));
  const std::optional<double> simulated = Simulated(settings, demands, kSimulatedSteps);
  return simulated ? std::min(least, *simulated * correction_) : least;
}

Prediction Predictor::Predict(const Settings& settings, const std::vector<Scale>& scales) const {
  Prediction prediction;
  const bool current = scales.empty() && IsCurrent(settings);
  prediction.rate = current ? model_.demands().rate : Rate(settings, scales);
  const Demands scaled = Apply(model_, model_.demands(), scales);
  const Demands demands = current ? scaled : At(middle_, {settings, scales});
  if (scaled.cpu_s > 0) prediction.cpu_cost = demands.cpu_s / scaled.cpu_s;
  prediction.limits = Bounds(model_, demands, settings);
  prediction.binding = BindingRow(model_, demands, prediction.limits);
  const double least = LeastBound(prediction.limits);
  std::vector<double> ratios;
  for (const Draw& draw : draws_) {
    if (!std::isfinite(least)) break;
    const Demands drawn =
        current ? Apply(model_, draw.demands, scales) : At(draw, {settings, scales});
    ratios.push_back(LeastBound(Bounds(model_, drawn, settings)) / least);
  }
  if (ratios.empty()) ratios.push_back(1);
  const Interval sampled = CentralInterval(ratios, 0.9);
  const double prior =
      current ? kSameError : ErrorAt(prediction.limits[prediction.binding].kind, settings);
  const auto widen = [&](double ratio, double sign) {
    const double half = std::abs(std::log(std::max(ratio, 1e-6)));
    return prediction.rate * std::exp(sign * std::hypot(half, kNormal90 * prior));
  };
  // However wrong the rest, the rate cannot exceed the bound.
  const double ceiling = std::max(prediction.rate, least * std::max(1.0, sampled.high));
  prediction.interval = {widen(sampled.low, -1), std::min(widen(sampled.high, 1), ceiling)};
  return prediction;
}

Interval Predictor::Gain(const Variant& from, const Variant& to, double gain) const {
  const auto bounds_of = [&](const Variant& variant, const Draw& draw) {
    return Bounds(model_, At(draw, variant), variant.settings);
  };
  const std::vector<Limit> limits = bounds_of(to, middle_);
  const double moves =
      std::log(LeastBound(limits)) - std::log(LeastBound(bounds_of(from, middle_)));
  std::vector<double> ratios;
  for (const Draw& draw : draws_) {
    const double moved =
        std::log(LeastBound(bounds_of(to, draw))) - std::log(LeastBound(bounds_of(from, draw)));
    ratios.push_back(std::isfinite(moved) && std::isfinite(moves) ? moved - moves : 0);
  }
  const Interval sampled = CentralInterval(ratios, 0.9);
  if (from == to) return {gain, gain};
  // The model's error is of the way from one to the other.
  const Demands demands = At(middle_, to);
  const LimitKind kind = limits[BindingRow(model_, demands, limits)].kind;
  const double middle = std::log1p(gain);
  const double error =
      kNormal90 * std::max(kLeastError, ErrorAt(kind, to.settings) *
                                            std::min(1.0, std::abs(middle) / kFullError));
  return {std::expm1(middle - std::hypot(std::min(sampled.low, 0.0), error)),
          std::expm1(middle + std::hypot(std::max(sampled.high, 0.0), error))};
}

}  // namespace headrace::analysis
