#include "analysis/model/prediction.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <span>

#include "analysis/model/limits/bounds.h"
#include "analysis/model/limits/limit_kind.h"
#include "analysis/model/starved.h"
#include "analysis/run/known_loaders.h"
#include "analysis/statistics/distributions.h"
#include "analysis/thresholds.h"
#include "base/infinite.h"

namespace headrace::analysis {
namespace {

constexpr int64_t kShapeSteps = 20'000;
constexpr int64_t kSimulatedSteps = 2500;
constexpr int kChanceRuns = 12;  // simulated runs that tell how much chance does
constexpr double kFewestSteps = 50, kMostChanceSteps = 400;  // of one of them
constexpr uint64_t kApart = 100'000;  // seeds of two runs, as operators and stages have their own
constexpr double kSpreadsTried[] = {0.7, 1, 1.4};  // times what windows show
constexpr int64_t kMoves = 30'000'000;             // the most moves of one simulation
constexpr double kNormal90 = 1.645;  // deviations that hold 90 % of a normal distribution
constexpr size_t kPredictionDraws = 200;

// Absolute deviations that 20 runs would have shown, were the prior true: what is seen is added to
// them, and has replaced them once as many were seen.
constexpr size_t kPriorRuns = 20;
std::vector<double> PriorResiduals(double deviation) {
  std::vector<double> residuals;
  for (size_t i = 0; i < kPriorRuns; ++i) {
    const double level = 0.5 + 0.5 * (static_cast<double>(i) + 0.5) / double{kPriorRuns};
    residuals.push_back(deviation * NormalQuantile(level));
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
// distribution. One that was far off counts for much, but for no more than kMostResidual in the
// mean of squares; where more than a tenth were far off, the quantile says how far.
double ErrorOf(const LimitKind& kind, const std::vector<PredictionRow>& earlier) {
  std::vector<double> residuals;
  for (const PredictionRow& row : earlier) {
    if (row.limited_by_kind != kind.name() || !row.observed || row.other_pipeline) continue;
    const double residual = std::abs(std::log(*row.observed / row.predicted));
    if (std::isfinite(residual)) residuals.push_back(residual);
  }
  if (residuals.size() >= kPriorRuns) return ConformalDeviation(residuals);
  const double prior = kind.prediction_error(), seen = static_cast<double>(residuals.size());
  double squares = double{kPriorRuns} * prior * prior;
  for (const double residual : residuals) {
    squares += std::min(residual, kMostResidual) * std::min(residual, kMostResidual);
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

// Whether somebody else wrote the program: nothing says what it does.
bool IsForeign(const PipelineModel& model) { return model.run().run.pipeline_path.empty(); }

// All that makes two variants differ.
std::string KeyOf(const Variant& variant) {
  const Settings& settings = variant.settings;
  std::string key;
  for (const auto* counts : {&settings.parallelism, &settings.queue_capacity}) {
    for (const int count : *counts) key += fmt::format("{},", count);
    key += ';';
  }
  key += fmt::format("{:a};{}", settings.cores, settings.order_window);
  for (const Scale& scale : variant.scales) {
    key += fmt::format(";{},{},{:a},{}", static_cast<int>(scale.part), scale.index, scale.factor,
                       scale.cpu);
  }
  return key;
}

}  // namespace

std::string HandingOverWords(double handing_over_s) {
  if (!(handing_over_s > 0)) return "";
  const double times = std::exp(kNormal90 * kHandingOverVaries);
  return fmt::format("assuming {:.1f} to {:.1f} ms to hand over a batch",
                     1e3 * handing_over_s / times, 1e3 * handing_over_s * times);
}

Predictor::Predictor(const PipelineModel& model)
    : model_(model), contention_(FitContention(model.run(), HostCores(model))) {
  // `dearer`: by so many deviations handing over a batch costs more than in the middle.
  const auto sample = [&](const Demands& demands, const Contention& contention, double dearer) {
    return Draw{demands, contention, ExpectedLoad(model, demands, model.current()),
                kHandingOverS * std::exp(kHandingOverVaries * dearer)};
  };
  middle_ = sample(model.demands(), contention_, 0);
  Random random(kSeed), handing_over(kSeed + 1);
  for (const Demands& demands : std::span(model.Bootstrap()).first(kPredictionDraws)) {
    draws_.push_back(sample(demands, contention_.Drawn(random.Normal()), handing_over.Normal()));
  }
  for (const LimitKind* kind : LimitKinds()) {
    errors_[kind] = ErrorOf(*kind, model.run().earlier_predictions);
  }
  unknown_stores_ = UnknownStoresOf(model);
  ChooseShape();
  moves_.left = Moves().left;
  chance_now_ = ChanceAt(model.current(), model.demands(), model.demands().rate);
  simulated_now_ = Simulated(model.current(), model.demands(), kSimulatedSteps);
  const std::vector<Limit> bounds = Bounds(model, model.demands(), model.current());
  least_now_ = LeastBound(bounds);
  for (const Limit& limit : bounds) {
    const std::optional<size_t> resource = limit.kind->ResourceOf(limit);
    const bool counted = resource && model.resources()[*resource].counted_s;
    if (limit.Is(kAcceleratorLimit)) continue;  // explains no rate that is far below it
    if (simulated_now_ && (counted || !limit.kind->simulated())) {
      simulated_now_ = std::min(*simulated_now_, limit.bound);
    }
  }
  if (simulated_now_ && std::isfinite(*simulated_now_) && *simulated_now_ > 0) {
    // A part of that is particular to the present settings.
    correction_ = std::clamp(std::pow(model.demands().rate / *simulated_now_, kCarriedOver),
                             1 / kMostCorrection, kMostCorrection);
  }
  const double bound =
      LeastBound(Bounds(model, At(middle_, {model.current(), {}}), model.current()));
  before_ = simulated_now_ ? std::min(bound, *simulated_now_ * correction_) : bound;
}

std::optional<double> Predictor::Simulated(const Settings& settings, const Demands& demands,
                                           int64_t steps, uint64_t seed) const {
  SimulatedPipeline pipeline = model_.Simulated(settings, demands);
  for (SimulatedStage& stage : pipeline.stages) {
    for (SimulatedOperator& op : stage.operators) {
      op.slow = shape_.slow;
      op.cv *= shape_.cv_factor;
    }
  }
  return SimulatedRate(pipeline, steps, seed, &moves_.left, kMoves);
}

std::vector<Predictor::Shape> Predictor::TryShapes(double slow) {
  std::vector<Shape> tried;
  const auto simulate = [&](double factor) {
    shape_ = {slow, factor};
    const std::optional<double> rate = Simulated(model_.current(), model_.demands(), kShapeSteps);
    if (!rate || !(*rate > 0)) return;
    shape_.log_rate_error = std::log(*rate / model_.demands().rate);
    tried.push_back(shape_);
  };
  if (model_.ordered()) {
    for (const double factor : kSpreadsTried) simulate(factor);
  } else {
    simulate(1);
  }
  return tried;
}

// Where elements stay in order, the rate tells how much they vary better than a run's few windows:
// a spread found from n of these is off by a part in the root of 2n.
Predictor::Shape Predictor::FittedShape(double slow) {
  const std::vector<Shape> tried = TryShapes(slow);
  const auto windows = static_cast<double>(std::max<size_t>(1, model_.stall_by_window().size()));
  const double weight = kShapeFits * std::sqrt(2 * windows);  // of a logarithm of the factor
  Shape best{slow};
  for (size_t i = 0; i < tried.size(); ++i) {
    const Shape& from = tried[i];
    const Shape& to = tried[std::min(i + 1, tried.size() - 1)];
    for (int percent = 0; percent < 100; percent += 10) {
      const double log_factor =
          std::lerp(std::log(from.cv_factor), std::log(to.cv_factor), percent / 100.0);
      const double error = std::lerp(from.log_rate_error, to.log_rate_error, percent / 100.0);
      const double misfit = std::hypot(error, weight * log_factor) + (slow > 0 ? kShapeClearly : 0);
      if (misfit < best.misfit) best = {slow, std::exp(log_factor), error, misfit};
    }
  }
  return best;
}

// Windows tell how much elements vary, not how: whether all a little or few of them much, which is
// worth a lot where order or short queues matter. The shape is taken that comes closest to what was
// observed at the present settings.
void Predictor::ChooseShape() {
  for (const StageModel& stage : model_.stages()) widest_cv_ = std::max(widest_cv_, stage.cv);
  if (widest_cv_ < kShapeMatters || !(model_.demands().rate > 0)) return;
  Shape best;
  for (const double slow : {0.0, 0.1, 0.05, 0.2, 0.02}) {
    const Shape shape = FittedShape(slow);
    if (shape.misfit < best.misfit) best = shape;
  }
  shape_ = best;
}

double Predictor::ChanceAt(const Settings& settings, const Demands& demands, double rate) const {
  if (!model_.ordered() || widest_cv_ < kShapeMatters || !(rate > 0)) return 0;
  const double steps = std::max(kFewestSteps, rate * model_.steady_seconds());
  const double simulated = std::min(steps, kMostChanceSteps);
  std::vector<double> logarithms;
  for (int run = 1; run <= kChanceRuns; ++run) {
    const std::optional<double> one = Simulated(settings, demands, static_cast<int64_t>(simulated),
                                                kSeed + kApart * static_cast<uint64_t>(run));
    if (one && *one > 0) logarithms.push_back(std::log(*one));
  }
  // Where it would take too long, it is as at the present settings.
  if (logarithms.size() < 2) return chance_now_;
  return std::sqrt(Variance(logarithms) * simulated / steps);
}

// Chance then, and in the run that was seen: all of it at the same settings, elsewhere as far as
// the correction by that run goes.
double Predictor::ChanceOf(const Variant& variant, const Demands& demands, double rate) const {
  const auto [it, added] = chances_.try_emplace(KeyOf(variant));
  if (!added) return it->second;
  const double chance = IsCurrent(variant) ? std::hypot(chance_now_, chance_now_)
                                           : std::hypot(ChanceAt(variant.settings, demands, rate),
                                                        kCarriedOver * chance_now_);
  // What pairs of runs of such a program differ by holds chance.
  const double foreign = IsForeign(model_) ? kForeignProgramError : 0;
  it->second = std::sqrt(std::max(0.0, chance * chance - foreign * foreign));
  return it->second;
}

Demands Predictor::At(const Draw& draw, const Variant& variant) const {
  Demands demands =
      AtLoad(model_, AtDepth(model_, Apply(model_, draw.demands, variant.scales), variant.settings),
             variant.settings, draw.load, draw.contention);
  AddHandingOver(variant.settings, draw.handing_over_s, &demands);
  return demands;
}

void Predictor::AddHandingOver(const Settings& settings, Demands* demands) const {
  AddHandingOver(settings, middle_.handing_over_s, demands);
}

// The trainer's thread waits for the worker that hands a batch over; both compute for it.
void Predictor::AddHandingOver(const Settings& settings, double seconds, Demands* demands) const {
  if (!FirstProcesses(settings)) return;
  const double cpu_s = kHandingOverComputes * seconds;
  demands->consumer_s += seconds / model_.consumers();
  demands->unattributed_cpu_s += cpu_s;
  demands->cpu_s += cpu_s;
}

// Workers beside the consumer were not seen at work: what handing over their batches costs is not
// known.
bool Predictor::FirstWorkers(const Settings& settings) const {
  for (size_t s = 0; s < settings.parallelism.size(); ++s) {
    if (model_.current().parallelism[s] <= 0 && settings.parallelism[s] > 0) return true;
  }
  return false;
}

bool Predictor::FirstProcesses(const Settings& settings) const {
  for (size_t s = 0; s < settings.parallelism.size(); ++s) {
    if (model_.current().parallelism[s] > 0 || settings.parallelism[s] <= 0) continue;
    const KnownLoader* known = FindKnownLoader(model_.run(), model_.stages()[s].name);
    if (known != nullptr && known->adds_processes) return true;
  }
  return false;
}

double Predictor::ErrorAt(const LimitKind* kind, const Settings& settings) const {
  return std::hypot(errors_.at(kind), FirstWorkers(settings) ? kHandingOverError : 0,
                    IsForeign(model_) ? kForeignProgramError : 0);
}

bool Predictor::IsCurrent(const Variant& variant) const {
  return variant.scales.empty() && variant.settings == model_.current();
}

double CorrectedRate(double rate, double before, double seen) {
  const double moved = std::abs(std::log(rate / before)), step = std::log(seen / before);
  const double far = std::max(kFarChange, std::abs(step) / kSteepestCorrection);
  return rate * std::exp(step * std::max(0.0, 1 - moved / far));
}

double Predictor::Corrected(double predicted, double least) const {
  const double seen = model_.demands().rate;
  const bool known = std::isfinite(predicted) && predicted > 0 && std::isfinite(before_) &&
                     before_ > 0 && seen > 0;
  if (!known) return predicted;
  // What was observed above the least bound is above it still.
  return std::min(CorrectedRate(predicted, before_, seen),
                  least * std::max(1.0, seen / least_now_));
}

Predictor::Point Predictor::BoundedAt(const Variant& variant) const {
  const bool current = IsCurrent(variant);
  Point point;
  point.demands = current ? model_.demands() : At(middle_, variant);
  point.limits = Bounds(model_, point.demands, variant.settings);
  point.least = LeastBound(point.limits);
  point.rate = current ? model_.demands().rate : Corrected(point.least, point.least);
  return point;
}

// The rate of a variant whose bounds are known.
double Predictor::RateWithin(const Variant& variant, const Point& bounded) const {
  if (IsCurrent(variant)) return bounded.rate;
  const std::optional<double> simulated = SimulatedAt(variant, bounded.demands);
  if (!simulated) return bounded.rate;
  return Corrected(std::min(bounded.least, *simulated * correction_), bounded.least);
}

Predictor::Point Predictor::PointAt(const Variant& variant) const {
  Point point = BoundedAt(variant);
  point.rate = RateWithin(variant, point);
  return point;
}

std::optional<double> Predictor::SimulatedAt(const Variant& variant, const Demands& demands) const {
  const auto [it, added] = simulated_.try_emplace(KeyOf(variant));
  if (added) it->second = Simulated(variant.settings, demands, kSimulatedSteps);
  return it->second;
}

std::optional<size_t> Predictor::OnUnknownStore(const Settings& settings) const {
  for (const UnknownStore& store : unknown_stores_) {
    if (settings.parallelism[store.stage] > store.threads) return store.stage;
  }
  return std::nullopt;
}

std::optional<Predictor::FullStore> Predictor::OnFullStore(const Variant& variant) const {
  const std::vector<ResourceModel>& resources = model_.resources();
  std::optional<FullStore> least;
  for (size_t r = 0; r < resources.size(); ++r) {
    if (!resources[r].name.starts_with(kStoreOf)) continue;
    const auto seconds = [&](const Demands& demands) {
      return demands.resources[r].hold_s + demands.resources[r].limiter_s;
    };
    const double now = seconds(model_.demands());
    const double then = seconds(Apply(model_, model_.demands(), variant.scales));
    const std::optional<double>& enough = resources[r].enough_threads;
    const size_t stage = model_.operators()[resources[r].users[0].first].stage;
    const bool full = !enough || stage == kNoStage || model_.current().parallelism[stage] > *enough;
    // The share of its time that is in use: this run's where that is all it gives, else at most 1.
    const double used_ratio = full ? model_.demands().rate * now : 1;
    const double rate = then > 0 ? used_ratio / then : kInfinite;
    if (!least || rate < least->rate) {
      least = FullStore{resources[r].name.substr(kStoreOf.size()), rate};
    }
  }
  return least;
}

std::string Predictor::StoreInDoubt(const Variant& variant) const {
  if (const auto stage = OnUnknownStore(variant.settings)) return model_.stages()[*stage].name;
  const std::optional<FullStore> full = OnFullStore(variant);
  return full ? full->stage : "";
}

std::optional<double> Predictor::RateOfFullStores(const Variant& variant, double rate) const {
  double full = kInfinite;
  if (OnUnknownStore(variant.settings)) {
    Variant held = variant;
    for (const UnknownStore& store : unknown_stores_) {
      int& threads = held.settings.parallelism[store.stage];
      threads = std::min(threads, store.threads);
    }
    full = PointAt(held).rate;
  }
  if (const auto store = OnFullStore(variant); store && !IsCurrent(variant)) {
    full = std::min(full, store->rate);
  }
  // Pauses may be of one of several loaders, or come before a longer queue is full.
  if (model_.pauses()) {
    const size_t stage = model_.pauses()->stage;
    Variant held = variant;
    int& queue = held.settings.queue_capacity[stage];
    if (queue > model_.current().queue_capacity[stage]) {
      queue = model_.current().queue_capacity[stage];
      full = std::min(full, PointAt(held).rate);
    }
  }
  if (full > rate * (1 - kNoGain)) return std::nullopt;
  return full * std::exp(-kNormal90 * kSaturatedError);
}

double Predictor::HigherOnceBusy(const Variant& variant, double least, double rate) const {
  const double now = model_.demands().rate;
  if (!std::isfinite(least) || !(least > 0) || !(now > 0)) return 1;
  const Demands demands = At(middle_, variant);
  double higher = 1;
  // The rate says how busy threads are, and the other way round; it only rises.
  for (int round = 0; round < 4; ++round) {
    const Demands busy = OnceBusy(model_, demands, rate * higher / now);
    higher = std::max(higher, LeastBound(Bounds(model_, busy, variant.settings)) / least);
  }
  return std::isfinite(higher) ? higher : 1;
}

double Predictor::Rate(const Variant& variant) const { return PointAt(variant).rate; }

double Predictor::RateOver(const Variant& variant, double floor) const {
  const Point point = BoundedAt(variant);
  return point.rate < floor ? point.rate : RateWithin(variant, point);
}

Prediction Predictor::Predict(const Variant& variant) const {
  const bool current = IsCurrent(variant);
  Point point = PointAt(variant);
  Prediction prediction;
  prediction.rate = point.rate;
  const Demands scaled = Apply(model_, model_.demands(), variant.scales);
  if (FirstProcesses(variant.settings)) prediction.handing_over_s = middle_.handing_over_s;
  const double work_s = point.demands.cpu_s - kHandingOverComputes * prediction.handing_over_s;
  if (scaled.cpu_s > 0) prediction.cpu_cost = work_s / scaled.cpu_s;
  prediction.limits = std::move(point.limits);
  prediction.binding = BindingRow(model_, point.demands, prediction.limits);
  std::vector<double> ratios;
  for (const Draw& draw : draws_) {
    if (!std::isfinite(point.least)) break;
    const Demands drawn = current ? draw.demands : At(draw, variant);
    ratios.push_back(LeastBound(Bounds(model_, drawn, variant.settings)) / point.least);
  }
  if (ratios.empty()) ratios.push_back(1);
  const Interval sampled = CentralInterval(ratios, 0.9);
  const double prior = current
                           ? kSameSettingsError
                           : ErrorAt(prediction.limits[prediction.binding].kind, variant.settings);
  const double error = std::hypot(prior, ChanceOf(variant, point.demands, prediction.rate));
  const auto widen = [&](double ratio, double sign) {
    const double half = std::abs(std::log(std::max(ratio, 1e-6)));
    return prediction.rate * std::exp(sign * std::hypot(half, kNormal90 * error));
  };
  // However wrong the rest, the rate cannot exceed the bound. That was measured in this run, and no
  // two runs of a program that somebody else wrote have quite the same costs.
  const double repeats = IsForeign(model_) ? std::exp(kNormal90 * kForeignProgramError) : 1;
  const double ceiling =
      std::max(prediction.rate, point.least * std::max(1.0, sampled.high) * repeats);
  prediction.interval = {widen(sampled.low, -1), std::min(widen(sampled.high, 1), ceiling)};
  if (!current) {
    prediction.interval.high =
        std::max(prediction.interval.high,
                 prediction.rate * repeats * HigherOnceBusy(variant, point.least, prediction.rate));
  }
  if (const std::optional<double> full = RateOfFullStores(variant, prediction.rate)) {
    prediction.store_may_be_full = *full < prediction.interval.low;
    prediction.interval.low = std::min(prediction.interval.low, *full);
  }
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
  const LimitKind* kind = limits[BindingRow(model_, demands, limits)].kind;
  const double middle = std::log1p(gain);
  const double full_error =
      std::hypot(ErrorAt(kind, to.settings), ChanceOf(to, demands, RateWithin(to, BoundedAt(to))));
  const double error =
      kNormal90 *
      std::max(kLeastChangeError, full_error * std::min(1.0, std::abs(middle) / kFullErrorFrom));
  Interval interval{std::expm1(middle - std::hypot(std::min(sampled.low, 0.0), error)),
                    std::expm1(middle + std::hypot(std::max(sampled.high, 0.0), error))};
  const double now = model_.demands().rate;
  const double least_from = LeastBound(bounds_of(from, middle_));
  const double rate_from = IsCurrent(from) ? now : least_from;
  interval.high = std::max(
      interval.high, (1 + gain) * HigherOnceBusy(to, LeastBound(limits), rate_from * (1 + gain)) /
                             HigherOnceBusy(from, least_from, rate_from) -
                         1);
  const bool more_at_once =
      OnUnknownStore(to.settings) && to.settings.parallelism != from.settings.parallelism;
  if (!more_at_once && !OnFullStore(to)) return interval;
  const double before = PointAt(from).rate;
  if (const auto full = RateOfFullStores(to, before * (1 + gain)); full && before > 0) {
    const double least_before = RateOfFullStores(from, before).value_or(before);
    interval.low = std::min(interval.low, *full / least_before - 1);
  }
  return interval;
}

}  // namespace headrace::analysis
