#include "analysis/sensitivity.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace headrace::analysis {
namespace {

constexpr int kLonger = 4;  // times, of ordered queues and their window
constexpr int kLongest = 1 << 20;

// A queue that is as good as endless stays as it is.
int Longer(int length) { return length > kLongest ? length : length * kLonger; }

double ShareOf(Step step) { return step == Step::kQuarter ? 0.25 : 0.1; }

int MoreThreads(int threads, Step step) {
  if (step == Step::kUnit) return threads + 1;
  return threads + std::max(1, static_cast<int>(std::lround(threads * ShareOf(step))));
}

// The pipeline with one row relieved.
struct Relief {
  Variant variant;
  std::string what;
};

Relief Faster(const Variant& at, Scaled part, size_t index, Step step) {
  const double factor = step == Step::kQuarter ? 0.8 : 1 / 1.1;
  Relief relief{at, fmt::format("{:.0f} % faster", 100 * (1 / factor - 1))};
  relief.variant.scales.push_back({part, index, factor});
  return relief;
}

Relief Relieve(const PipelineModel& model, const Variant& at, const Limit& limit, Step step) {
  Relief relief{at, {}};
  Settings& settings = relief.variant.settings;
  switch (limit.kind) {
    case LimitKind::kConsumer:
      return Faster(at, Scaled::kConsumer, 0, step);
    case LimitKind::kLock:
    case LimitKind::kDevice:
      return Faster(at, Scaled::kResource, limit.index, step);
    case LimitKind::kCores: {
      const double cores = settings.cores;
      settings.cores += step == Step::kUnit ? 1 : std::max(1.0, std::round(cores * ShareOf(step)));
      relief.what = fmt::format("{:.3g} cores instead of {:.3g}", settings.cores, cores);
      break;
    }
    case LimitKind::kStage: {
      const int threads = settings.parallelism[limit.index];
      const int more = MoreThreads(threads, step);
      const int most = model.stages()[limit.index].max_parallelism;
      if (most > 0 && more > most) return Faster(at, Scaled::kStage, limit.index, step);
      relief.what = fmt::format("{} threads instead of {}", more, threads);
      settings.parallelism[limit.index] = more;
      break;
    }
    case LimitKind::kThread:
      relief.what = "a worker that loads while the consumer computes";
      for (int& threads : settings.parallelism) threads = std::max(1, threads);
      break;
    case LimitKind::kOrder:
      relief.what = fmt::format("queues and window {} times as long", kLonger);
      for (int& capacity : settings.queue_capacity) capacity = Longer(capacity);
      settings.order_window = Longer(settings.order_window);
      break;
  }
  return relief;
}

}  // namespace

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
  const double before = predictor.Rate(at.settings, at.scales);
  for (const Limit& limit : rows) {
    if (!std::isfinite(limit.bound)) continue;
    const Relief relief = Relieve(model, at, limit, step);
    const auto& [settings, scales] = relief.variant;
    Worth worth;
    worth.limit = limit;
    worth.what = relief.what;
    // More of something need not be used: less than nothing is the simulation's noise.
    worth.rate = std::max(predictor.Rate(settings, scales), before);
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
    Settings changed = at.settings;
    changed.cores = cores;
    return predictor.Rate(changed, at.scales);
  });
}

Curve RateOverThreads(const Predictor& predictor, const Settings& settings, size_t stage, int most,
                      double worthwhile) {
  return RateOver(most, worthwhile, [&](int threads) {
    Settings changed = settings;
    changed.parallelism[stage] = threads;
    return predictor.Rate(changed);
  });
}

}  // namespace headrace::analysis
