#include "analysis/statistics/sequential.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "analysis/statistics/distributions.h"
#include "base/check.h"
#include "base/infinite.h"

namespace headrace::analysis {
namespace {

constexpr size_t kFirstLook = 4;
constexpr size_t kRanksFrom = 10, kRanksTo = 1000;  // pairs; above, Walsh averages are too many
constexpr size_t kExactTo = 60;  // pairs; above, the statistic is normal to three digits
constexpr double kBlockCorrelation = 0.125;
constexpr size_t kPaths = 200'000;
constexpr double kMostWork = 1e9;   // path steps of a simulation: a second or two
constexpr size_t kFutileFrom = 10;  // pairs
constexpr double kFutileChance = 0.01;

struct PlannedLook {
  size_t pairs = 0;
  double spent = 0;  // share of alpha spent until here, this look included
};

// Pocock-like: ln(1 + (e - 1) t) of alpha at the share t of the pairs.
std::vector<PlannedLook> Planned(size_t max_pairs) {
  std::vector<PlannedLook> looks;
  for (size_t pairs = kFirstLook; pairs < max_pairs;) {
    const double share = static_cast<double>(pairs) / static_cast<double>(max_pairs);
    looks.push_back({pairs, std::log(1 + (M_E - 1) * share)});
    pairs += pairs < kExactTo ? 2 : pairs / 40 * 2;
  }
  looks.push_back({max_pairs, 1});
  return looks;
}

double AllRanks(size_t pairs) {
  const double n = static_cast<double>(pairs);
  return n * (n + 1) / 2;
}

// Standard deviation of the signed-rank sum if the sides are equal, without ties.
double RankDeviation(size_t pairs) {
  const double n = static_cast<double>(pairs);
  return std::sqrt(n * (n + 1) * (2 * n + 1) / 24);
}

// The statistic of one path of equal sides at each look; the larger, the further from equal: |t|,
// or the smaller rank sum with its sign turned. Paths are their own streams, so that a path is the
// same however far it goes.
class NullPath {
 public:
  explicit NullPath(uint64_t seed) : random_(seed) {}

  void Extend(size_t pairs) {
    while (values_.size() < pairs) {
      if (values_.size() % 2 == 0) shared_ = random_.Normal();
      const double value = std::sqrt(kBlockCorrelation) * shared_ +
                           std::sqrt(1 - kBlockCorrelation) * random_.Normal();
      values_.push_back(value);
      sum_ += value;
      squares_ += value * value;
      // Walsh averages above 0 are the rank sum of the positive values (Tukey 1949).
      if (with_ranks_) {
        for (double other : values_) positive_ += other + value > 0;
      }
    }
  }
  void WithRanks(bool with) { with_ranks_ = with; }

  float At(bool ranks) const {
    const double n = static_cast<double>(values_.size());
    if (ranks)
      return static_cast<float>(-std::min(positive_, AllRanks(values_.size()) - positive_));
    const double variance = (squares_ - sum_ * sum_ / n) / (n - 1);
    return static_cast<float>(std::abs(sum_) / std::sqrt(n * variance));
  }

  // The statistic as a standard normal deviate that continues by independent increments, for paths
  // that have reached the length of the exact ones.
  float GoOn(size_t pairs) {
    if (far_pairs_ == 0) {
      far_pairs_ = values_.size();
      const double n = static_cast<double>(far_pairs_);
      far_sum_ = (positive_ - AllRanks(far_pairs_) / 2) / RankDeviation(far_pairs_) * std::sqrt(n);
    }
    far_sum_ += std::sqrt((1 + kBlockCorrelation) * static_cast<double>(pairs - far_pairs_)) *
                random_.Normal();
    far_pairs_ = pairs;
    return static_cast<float>(std::abs(far_sum_) / std::sqrt(static_cast<double>(pairs)));
  }

 private:
  Random random_;
  std::vector<double> values_;
  double shared_ = 0, sum_ = 0, squares_ = 0, positive_ = 0, far_sum_ = 0;
  size_t far_pairs_ = 0;
  bool with_ranks_ = false;
};

double Deviate(const SequentialPlan::Look& look, const SequentialPlan::Bound& bound) {
  if (!look.ranks) return bound.t;
  return bound.rank_sum < 0 ? kInfinite
                            : (AllRanks(look.pairs) / 2 - static_cast<double>(bound.rank_sum)) /
                                  RankDeviation(look.pairs);
}

// Bounds that spend `alpha` as planned. `statistics`: path by path, a value for each look.
void Calibrate(const std::vector<PlannedLook>& planned, const std::vector<float>& statistics,
               double alpha, SequentialPlan::Bound SequentialPlan::Look::*member,
               std::vector<SequentialPlan::Look>* looks) {
  const size_t count = planned.size(), paths = statistics.size() / count;
  std::vector<char> alive(paths, 1);
  size_t used = 0;
  for (size_t k = 0; k < count; ++k) {
    std::vector<float> left;
    for (size_t path = 0; path < paths; ++path) {
      if (alive[path]) left.push_back(statistics[path * count + k]);
    }
    const size_t target =
        static_cast<size_t>(alpha * planned[k].spent * static_cast<double>(paths));
    const size_t allowed = target > used ? target - used : 0;
    // The value that may no longer be called a difference.
    float within = kInfinite;
    if (allowed < left.size()) {
      const auto at = left.begin() + static_cast<ptrdiff_t>(allowed);
      std::nth_element(left.begin(), at, left.end(), std::greater<>());
      within = *at;
    } else {
      within = -kInfinite;
    }
    for (size_t path = 0; path < paths; ++path) {
      if (alive[path] && statistics[path * count + k] > within) {
        alive[path] = 0;
        ++used;
      }
    }
    SequentialPlan::Look& look = (*looks)[k];
    SequentialPlan::Bound& bound = look.*member;
    if (look.ranks && look.pairs > kExactTo) {
      bound.rank_sum = static_cast<int64_t>(
          std::floor(AllRanks(look.pairs) / 2 - within * RankDeviation(look.pairs)));
    } else if (look.ranks) {
      bound.rank_sum = static_cast<int64_t>(-within) - 1;
    } else {
      bound.t = within;
    }
    bound.deviate = Deviate(look, bound);
  }
}

// As many paths as the work of `max_pairs` allows, whichever looks are planned: bounds of the same
// looks are then the same.
std::vector<SequentialPlan::Look> Bounds(const std::vector<PlannedLook>& planned, size_t max_pairs,
                                         double alpha, uint64_t seed) {
  std::vector<SequentialPlan::Look> looks;
  for (const PlannedLook& one : planned) {
    looks.push_back({one.pairs, one.pairs >= kRanksFrom && one.pairs <= kRanksTo, {}, {}});
  }
  const bool with_ranks = max_pairs >= kRanksFrom;
  const double n = static_cast<double>(std::min(max_pairs, kExactTo));
  // Work of one path: the normal draws, and the Walsh averages.
  const double work = 20 * (n + static_cast<double>(looks.size())) + (with_ranks ? n * n / 2 : 0);
  const size_t paths = std::clamp<size_t>(static_cast<size_t>(kMostWork / work), 10'000, kPaths);
  std::vector<float> statistics;
  statistics.reserve(paths * looks.size());
  Random seeds(seed);
  for (size_t i = 0; i < paths; ++i) {
    NullPath path(seeds.Next());
    path.WithRanks(with_ranks);
    for (const SequentialPlan::Look& look : looks) {
      path.Extend(std::min(look.pairs, kExactTo));
      statistics.push_back(look.pairs <= kExactTo ? path.At(look.ranks) : path.GoOn(look.pairs));
    }
  }
  Calibrate(planned, statistics, alpha, &SequentialPlan::Look::difference, &looks);
  Calibrate(planned, statistics, 2 * alpha, &SequentialPlan::Look::same, &looks);
  return looks;
}

// Averages of all pairs of values, each with itself too, sorted.
std::vector<double> WalshAverages(std::span<const double> values) {
  std::vector<double> averages;
  for (size_t i = 0; i < values.size(); ++i) {
    for (size_t j = i; j < values.size(); ++j) averages.push_back((values[i] + values[j]) / 2);
  }
  std::sort(averages.begin(), averages.end());
  return averages;
}

struct Moments {
  double mean = 0, error = 0;  // of the mean
};
Moments MomentsOf(std::span<const double> values) {
  const bool equal =
      std::all_of(values.begin(), values.end(), [&](double value) { return value == values[0]; });
  if (equal) return {values[0], 0};
  return {Mean(values), std::sqrt(Variance(values) / static_cast<double>(values.size()))};
}

Interval Inverted(const Moments& moments, const SequentialPlan::Bound& bound) {
  if (moments.error == 0) return {moments.mean, moments.mean};
  return {moments.mean - bound.t * moments.error, moments.mean + bound.t * moments.error};
}

// What the signed-rank test does not call different from the values.
Interval Inverted(const std::vector<double>& averages, const SequentialPlan::Bound& bound) {
  if (averages.front() == averages.back()) return {averages.front(), averages.back()};
  if (bound.rank_sum < 0) return kUnbounded;
  const size_t skipped = static_cast<size_t>(bound.rank_sum);
  // A rank sum at or below the bound: at most that many averages on one side.
  if (2 * skipped + 1 >= averages.size()) return {Quantile(averages, 0.5), Quantile(averages, 0.5)};
  return {averages[skipped], averages[averages.size() - 1 - skipped]};
}

}  // namespace

SequentialPlan PlanSequential(size_t max_pairs, double alpha, uint64_t seed) {
  HR_CHECK(max_pairs >= 2, "a comparison of at least two pairs");
  HR_CHECK(alpha > 0 && alpha < 0.5, "alpha between 0 and 0.5");
  return {max_pairs, alpha, seed, Bounds(Planned(max_pairs), max_pairs, alpha, seed)};
}

const char* StopReasonName(StopReason reason) {
  switch (reason) {
    case StopReason::kNone:
      return "none";
    case StopReason::kDifference:
      return "difference";
    case StopReason::kSame:
      return "same";
    case StopReason::kFutile:
      return "futile";
    case StopReason::kMaximum:
      return "maximum";
  }
  return "none";
}

SequentialTest::SequentialTest(size_t max_pairs, double alpha, double margin)
    : SequentialTest(PlanSequential(max_pairs, alpha), margin) {}

SequentialTest::SequentialTest(SequentialPlan plan, double margin)
    : plan_(std::move(plan)), margin_(margin) {}

SequentialStep SequentialTest::Add(double log_ratio) {
  if (step_.stop) return step_;
  if (!std::isfinite(log_ratio)) {
    ++left_out_;
    return step_;
  }
  ratios_.push_back(log_ratio);
  if (looked_at_ == 0) estimate_ = Mean(ratios_);
  for (const SequentialPlan::Look& look : plan_.looks) {
    if (look.pairs == ratios_.size()) return Look(look, look.pairs == plan_.max_pairs);
  }
  return step_;
}

SequentialStep SequentialTest::Close() {
  if (step_.stop) return step_;
  if (ratios_.size() < 2) return step_ = {true, StopReason::kMaximum};
  // The looks that were made, and the last one here with all that is left. The earlier bounds come
  // out as they were: the same paths, the same spending.
  std::vector<PlannedLook> planned;
  for (const PlannedLook& one : Planned(plan_.max_pairs)) {
    if (one.pairs < ratios_.size()) planned.push_back(one);
  }
  planned.push_back({ratios_.size(), 1});
  return Look(Bounds(planned, plan_.max_pairs, plan_.alpha, plan_.seed).back(), /*last=*/true);
}

SequentialStep SequentialTest::Look(const SequentialPlan::Look& look, bool last) {
  looked_at_ = look.pairs;
  if (look.ranks) {
    const std::vector<double> averages = WalshAverages(ratios_);
    estimate_ = Quantile(averages, 0.5);
    interval_ = Inverted(averages, look.difference);
    within_ = Inverted(averages, look.same);
  } else {
    const Moments moments = MomentsOf(ratios_);
    estimate_ = moments.mean;
    interval_ = Inverted(moments, look.difference);
    within_ = Inverted(moments, look.same);
  }
  const ChangeVerdict found = verdict();
  if (found == ChangeVerdict::kSame) return step_ = {true, StopReason::kSame};
  if (found != ChangeVerdict::kCannotTell) return step_ = {true, StopReason::kDifference};
  if (last) return step_ = {true, StopReason::kMaximum};
  decides_ = ChanceToDecide(look);
  if (decides_ < kFutileChance) return step_ = {true, StopReason::kFutile};
  return step_;
}

// The estimate at the maximum is the present one and what the pairs to come move it by, of the
// spread seen so far (predictive power: Spiegelhalter, Freedman, Blackburn 1986, flat prior).
double SequentialTest::ChanceToDecide(const SequentialPlan::Look& look) const {
  if (look.pairs < kFutileFrom) return 1;
  if (std::isinf(look.difference.deviate) || std::isinf(interval_.high)) return 1;
  const double n = static_cast<double>(look.pairs), most = static_cast<double>(plan_.max_pairs);
  const double error = (interval_.high - interval_.low) / 2 / look.difference.deviate;
  const double deviation = error * std::sqrt(n);
  const SequentialPlan::Look& end = plan_.looks.back();
  const double reach = end.difference.deviate * deviation / std::sqrt(most);
  const double room = margin_ - end.same.deviate * deviation / std::sqrt(most);
  const double moves = deviation * std::sqrt(1 / n - 1 / most);
  if (moves <= 0) return 1;
  auto below = [&](double value) { return StudentCdf((value - estimate_) / moves, n - 1); };
  double chance = 1 - below(reach) + below(-reach);
  if (room > 0) chance += below(room) - below(-room);
  return std::clamp(chance, 0.0, 1.0);
}

}  // namespace headrace::analysis
