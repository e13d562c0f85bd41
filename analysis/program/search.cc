#include "analysis/program/search.h"

#include <algorithm>
#include <utility>

#include "analysis/model/queue_loss.h"
#include "analysis/thresholds.h"

namespace headrace::analysis {
namespace {

constexpr int kRounds = 6;
constexpr size_t kMostSteps = 20;  // tried in a round

}  // namespace

bool WithinMost(const std::vector<int>& most, const Settings& settings) {
  for (size_t s = 0; s < most.size(); ++s) {
    if (settings.parallelism[s] > most[s]) return false;
  }
  return true;
}

Search::Search(const PipelineModel& model, const Predictor& predictor, const std::vector<int>& most,
               std::vector<Scale> scales, std::function<bool(const Settings&)> fits, double target)
    : model_(model),
      predictor_(predictor),
      most_(most),
      scales_(std::move(scales)),
      demands_(Apply(model, model.demands(), scales_)),
      fits_(std::move(fits)),
      target_(target) {}

void Search::Run(const Settings& start, const Settings& current) {
  plan_ = start;
  rate_ = predictor_.Rate({start, scales_});
  Undo(current);
  Deepen();
  Climb();
  Undo(current);
}

double Search::RateOver(const Settings& settings, double floor) const {
  return predictor_.RateOver({settings, scales_}, floor);
}

// As long as all changes that are taken back lose little together.
void Search::Undo(const Settings& current) {
  const double needed = std::min(target_, rate_) * (1 - kWorthwhileGain / 2);
  for (auto member : {&Settings::parallelism, &Settings::queue_capacity}) {
    for (size_t s = 0; s < plan_.parallelism.size(); ++s) {
      Settings without = plan_;
      (without.*member)[s] = (current.*member)[s];
      if ((without.*member)[s] == (plan_.*member)[s]) continue;
      if (!fits_(without) || !WithinMost(most_, without)) continue;
      const double rate = RateOver(without, needed);
      if (rate < needed) continue;
      plan_ = without;
      rate_ = rate;
    }
  }
  for (size_t s = 0; s < plan_.parallelism.size(); ++s) Narrow(s, current, needed);
}

// One thread less, as long as that keeps `needed`.
void Search::Narrow(size_t s, const Settings& current, double needed) {
  while (plan_.parallelism[s] > std::max(1, current.parallelism[s] + 1)) {
    Settings fewer = plan_;
    --fewer.parallelism[s];
    const double rate = fits_(fewer) ? RateOver(fewer, needed) : 0;
    if (rate < needed) return;
    plan_ = fewer;
    rate_ = rate;
  }
}

// All queues as long as costs that vary ask for, as far as the memory goes: those of the stages
// that allow least first, as the others gain little by it.
void Search::Deepen() {
  std::vector<std::pair<double, size_t>> order;
  for (size_t s = 0; s < plan_.queue_capacity.size(); ++s) {
    if (model_.stages()[s].on_consumer) continue;  // it has no queue yet
    order.emplace_back(plan_.parallelism[s] / std::max(demands_.stage_s[s], 1e-9), s);
  }
  std::sort(order.begin(), order.end());
  Settings deeper = plan_;
  for (const auto& [bound, s] : order) {
    Settings trial = deeper;
    trial.queue_capacity[s] = std::max(Places(s), plan_.queue_capacity[s]);
    while (trial.queue_capacity[s] > plan_.queue_capacity[s] && !fits_(trial)) {
      --trial.queue_capacity[s];
    }
    deeper = trial;
  }
  const double needed = rate_ * (1 + kWorthwhileGain / 2);
  const double rate = RateOver(deeper, needed);
  if (rate < needed) return;
  plan_ = deeper;
  rate_ = rate;
}

// The best of the steps, while one pays.
void Search::Climb() {
  for (int round = 0; round < kRounds && rate_ < target_; ++round) {
    Settings best = plan_;
    double most = rate_ * (1 + kWorthwhileGain / 2);
    for (const Settings& step : Steps()) {
      const double rate = RateOver(step, most);
      if (rate <= most) continue;
      most = rate;
      best = step;
    }
    if (most <= rate_ * (1 + kWorthwhileGain / 2)) return;
    plan_ = best;
    rate_ = most;
  }
}

// By the diffusion formula at the planned loads; in order, threads wait for the slowest of them
// unless there is room for what they did since.
int Search::Places(size_t s) const {
  const std::vector<StageModel>& stages = model_.stages();
  const auto capacity = [&](size_t i) {
    return plan_.parallelism[i] / std::max(demands_.stage_s[i], 1e-9);
  };
  const std::optional<size_t> next = stages[s].output;
  const double ours = capacity(s);
  const double theirs = next ? capacity(*next) : 1 / std::max(demands_.consumer_s, 1e-9);
  const double their_cv = next ? stages[*next].cv : model_.consumer_cv();
  int places = SufficientCapacity(std::min(ours, theirs) / std::max(ours, theirs), stages[s].cv,
                                  their_cv, 0.01, plan_.queue_capacity[s], kMaxCapacity);
  if (model_.pauses() && model_.pauses()->stage == s) {
    places = std::max(places, std::min(model_.QueueOverPauses(), kMostOverPauses));
  }
  const bool waits = model_.ordered() && plan_.parallelism[s] > 1;
  return waits ? std::max(places, kOrderedPlaces * plan_.parallelism[s]) : places;
}

// Gives up places of the longest queue, one half at a time, until the memory is enough: more
// threads may be worth more than a long queue.
bool Search::MakeFit(Settings* settings) const {
  while (!fits_(*settings)) {
    int* longest = nullptr;
    for (size_t s = 0; s < settings->queue_capacity.size(); ++s) {
      if (model_.stages()[s].on_consumer) continue;
      int& places = settings->queue_capacity[s];
      if (!longest || places > *longest) longest = &places;
    }
    if (!longest || *longest < 2) return false;
    *longest /= 2;
  }
  return true;
}

// Those of one stage, with the rate that its threads allow.
void Search::AddSteps(size_t s, std::vector<std::pair<double, Settings>>* steps) const {
  if (model_.stages()[s].stays_on_consumer) return;
  const int threads = plan_.parallelism[s];
  const double bound = threads / std::max(demands_.stage_s[s], 1e-9);
  // A few more; twice as many, where costs vary so much that a few are all caught by slow elements;
  // half, where they take the cores from stages that need them more.
  for (const int other : {threads + std::max(1, threads / 4), 2 * threads, threads / 2}) {
    Settings step = plan_;
    step.parallelism[s] = std::clamp(other, 1, std::max(threads, most_[s]));
    if (step.parallelism[s] != threads && MakeFit(&step)) steps->emplace_back(bound, step);
  }
  if (model_.stages()[s].on_consumer) return;
  const int most = std::max(model_.ordered() ? kOrderedPlaces * 2 * threads : 0, kMaxCapacity);
  Settings deeper = plan_;
  if (deeper.queue_capacity[s] <= most / 2) deeper.queue_capacity[s] *= 2;
  if (deeper.queue_capacity[s] != plan_.queue_capacity[s] && fits_(deeper)) {
    steps->emplace_back(bound, deeper);
  }
}

// Those of all stages together, as stages that limit alike gain only so; then those of the stages
// that allow least.
std::vector<Settings> Search::Steps() const {
  std::vector<std::pair<double, Settings>> steps;
  Settings wider = plan_, deeper = plan_;
  for (size_t s = 0; s < plan_.parallelism.size(); ++s) {
    if (model_.stages()[s].stays_on_consumer) continue;
    AddSteps(s, &steps);
    wider.parallelism[s] = std::min(std::max(most_[s], plan_.parallelism[s]),
                                    plan_.parallelism[s] + std::max(1, plan_.parallelism[s] / 4));
    if (plan_.queue_capacity[s] < kMaxCapacity && !model_.stages()[s].on_consumer) {
      deeper.queue_capacity[s] = std::min(2 * plan_.queue_capacity[s], kMaxCapacity);
    }
  }
  std::stable_sort(steps.begin(), steps.end(),
                   [](const auto& a, const auto& b) { return a.first < b.first; });
  std::vector<Settings> result;
  if (MakeFit(&wider)) result.push_back(std::move(wider));
  if (fits_(deeper)) result.push_back(std::move(deeper));
  for (size_t i = 0; i < std::min(steps.size(), kMostSteps); ++i) {
    result.push_back(std::move(steps[i].second));
  }
  return result;
}

}  // namespace headrace::analysis
