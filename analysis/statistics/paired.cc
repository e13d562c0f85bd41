#include "analysis/statistics/paired.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>

#include "analysis/statistics/distributions.h"
#include "base/check.h"
#include "base/infinite.h"

namespace headrace::analysis {
namespace {

constexpr size_t kExactSigns = 25;   // differences: 2^25 signs, by dynamic programming
constexpr size_t kExactValues = 50;  // of both sides: C(50, 25) < 2^53, so that counts are exact
constexpr size_t kMaxPairs = 10'000'000;

std::vector<double> Finite(std::span<const double> values, double above = -kInfinite) {
  std::vector<double> kept;
  for (double value : values) {
    if (std::isfinite(value) && value > above) kept.push_back(value);
  }
  return kept;
}

bool AllEqual(std::span<const double> values) {
  return std::adjacent_find(values.begin(), values.end(), std::not_equal_to<>()) == values.end();
}

// Differences below the rounding of their squares are none.
bool NoSpread(std::span<const double> values) { return AllEqual(values) || Variance(values) <= 0; }

double StandardError(std::span<const double> values) {
  return std::sqrt(Variance(values) / static_cast<double>(values.size()));
}

// The ends of a BCa interval from the bootstrap distribution, whose order it changes. `z`: normal
// quantile of the upper end before correction.
Interval BcaEnds(std::vector<double>& draws, double estimate, double acceleration, double z) {
  const double count = static_cast<double>(draws.size());
  // Draws equal to the estimate count half. An estimate outside of all draws would be at infinity.
  double below = 0;
  for (double draw : draws) below += draw < estimate ? 1 : draw == estimate ? 0.5 : 0;
  const double bias = NormalQuantile(std::clamp(below / count, 0.5 / count, 1 - 0.5 / count));
  auto end = [&](double quantile) {
    const double shifted = bias + quantile;
    const double scale = 1 - acceleration * shifted;
    const double p = scale > 0 ? NormalCdf(bias + shifted / scale) : quantile > 0 ? 1.0 : 0.0;
    const double position = p * (count - 1);
    const size_t under = static_cast<size_t>(position);
    // The draws around that rank: the next one up is the least of those above.
    const auto at = draws.begin() + static_cast<ptrdiff_t>(under);
    std::nth_element(draws.begin(), at, draws.end());
    const double next = at + 1 == draws.end() ? *at : *std::min_element(at + 1, draws.end());
    const double weight = position - static_cast<double>(under);
    return *at * (1 - weight) + next * weight;
  };
  return {end(-z), end(z)};
}

double UpperQuantile(double level, size_t n, bool expand) {
  const double p = (1 + level) / 2;
  if (!expand) return NormalQuantile(p);
  const double count = static_cast<double>(n);
  return std::sqrt(count / (count - 1)) * StudentQuantile(p, count - 1);
}

// Sum of cubes over the sum of squares to 3/2, over 6: Efron's acceleration of influence values.
double Acceleration(std::span<const double> influences) {
  double squares = 0, cubes = 0;
  for (double value : influences) {
    squares += value * value;
    cubes += value * value * value;
  }
  const double scale = std::pow(squares, 1.5);
  return scale > 0 ? cubes / (6 * scale) : 0;
}

Interval Wider(Interval a, Interval b) {
  return {std::min(a.low, b.low), std::max(a.high, b.high)};
}

// Twice the mean rank of each value (so that ranks of ties are whole numbers), and the sum of
// t^3 - t over groups of ties.
std::vector<int64_t> DoubledRanks(std::span<const double> values, double* ties) {
  std::vector<size_t> order(values.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::sort(order.begin(), order.end(), [&](size_t i, size_t j) { return values[i] < values[j]; });
  std::vector<int64_t> ranks(values.size());
  *ties = 0;
  for (size_t first = 0; first < order.size();) {
    size_t last = first;
    while (last < order.size() && values[order[last]] == values[order[first]]) ++last;
    // Ranks first + 1 .. last have the mean (first + 1 + last) / 2.
    for (size_t i = first; i < last; ++i) ranks[order[i]] = static_cast<int64_t>(first + 1 + last);
    const double group = static_cast<double>(last - first);
    *ties += group * group * group - group;
    first = last;
  }
  return ranks;
}

// P(X <= low or X >= high mirrored): twice the smaller tail of the counts, at most 1.
double TwoSided(const std::vector<double>& counts, int64_t observed) {
  double below = 0, above = 0, all = 0;
  for (size_t sum = 0; sum < counts.size(); ++sum) {
    all += counts[sum];
    if (static_cast<int64_t>(sum) <= observed) below += counts[sum];
    if (static_cast<int64_t>(sum) >= observed) above += counts[sum];
  }
  return std::min(1.0, 2 * std::min(below, above) / all);
}

double NormalTwoSided(double distance, double variance) {
  if (variance <= 0) return 1;
  return std::erfc(std::abs(distance) / std::sqrt(2 * variance));
}

double Median(std::vector<double> values) {
  const size_t middle = values.size() / 2;
  std::nth_element(values.begin(), values.begin() + static_cast<ptrdiff_t>(middle), values.end());
  const double upper = values[middle];
  if (values.size() % 2 == 1) return upper;
  return (upper +
          *std::max_element(values.begin(), values.begin() + static_cast<ptrdiff_t>(middle))) /
         2;
}

double CenterOf(const std::vector<double>& values, Center center) {
  return center == Center::kMean ? Mean(values) : Median(values);
}

void Redraw(const std::vector<double>& values, Random& random, std::vector<double>* draw) {
  draw->resize(values.size());
  for (double& value : *draw) value = values[random.Below(values.size())];
}

// Welch's interval for a difference of two means whose standard errors are these.
Interval Welch(double difference, double error_a, double freedom_a, double error_b,
               double freedom_b, double level) {
  const double variance_a = error_a * error_a, variance_b = error_b * error_b;
  const double variance = variance_a + variance_b;
  if (variance <= 0) return {difference, difference};
  const double freedom =
      variance * variance /
      (variance_a * variance_a / freedom_a + variance_b * variance_b / freedom_b);
  const double half = StudentQuantile((1 + level) / 2, freedom) * std::sqrt(variance);
  return {difference - half, difference + half};
}

// Power of the two-sided paired t test of n pairs with that deviation.
double PairedPower(double effect, double deviation, double n, double alpha) {
  const double critical = StudentQuantile(1 - alpha / 2, n - 1);
  return StudentPower(effect / deviation * std::sqrt(n), n - 1, critical);
}

std::vector<double> KeepMeasured(std::span<const double> values) {
  std::vector<double> kept;
  for (const double value : values) {
    if (std::isfinite(value) && value >= 0) kept.push_back(value);
  }
  return kept;
}

// Twice the dependence, at least the cube root of the count (Kuensch 1989's order), and not so long
// that a draw would be the series itself.
size_t BlockLength(size_t n, double effective) {
  const double count = static_cast<double>(n);
  const double length = std::max(2 * count / effective, std::cbrt(count));
  return std::clamp<size_t>(static_cast<size_t>(std::ceil(length)), 1, std::max<size_t>(n / 3, 1));
}

// Standard error of the mean, as a share of it.
double RelativeError(const std::vector<double>& values, double effective) {
  if (AllEqual(values)) return 0.0;
  // The deviation from a series' own mean is too small by 1 - 1 / effective.
  return std::sqrt(Variance(values) / std::max(effective - 1, 0.5)) / Mean(values);
}

}  // namespace

std::vector<double> LogRatios(std::span<const double> a, std::span<const double> b) {
  HR_CHECK(a.size() == b.size(), "pairs have two sides");
  std::vector<double> ratios;
  for (size_t i = 0; i < a.size(); ++i) {
    if (a[i] > 0 && b[i] > 0 && std::isfinite(a[i]) && std::isfinite(b[i])) {
      ratios.push_back(std::log(b[i]) - std::log(a[i]));
    }
  }
  return ratios;
}

Interval BcaMean(std::span<const double> values, double level, uint64_t seed, size_t resamples,
                 bool expand) {
  if (values.size() < 2) return kUnbounded;
  if (AllEqual(values)) return {values[0], values[0]};
  Random random(seed);
  std::vector<double> means(std::max<size_t>(resamples, 1));
  const uint64_t count = values.size();
  for (double& mean : means) {
    double sum = 0;
    // Two indices from a draw: 32 bits scaled to the count, which is far smaller.
    for (size_t i = 0; i < values.size(); i += 2) {
      const uint64_t bits = random.Next();
      sum += values[((bits >> 32) * count) >> 32];
      if (i + 1 < values.size()) sum += values[((bits & 0xffffffffu) * count) >> 32];
    }
    mean = sum / static_cast<double>(count);
  }
  const double mean = Mean(values);
  std::vector<double> influences(values.begin(), values.end());
  for (double& value : influences) value -= mean;
  return BcaEnds(means, mean, Acceleration(influences),
                 UpperQuantile(level, values.size(), expand));
}

Interval StudentMean(std::span<const double> values, double level) {
  if (values.size() < 2) return kUnbounded;
  if (AllEqual(values)) return {values[0], values[0]};
  const double half = StudentQuantile((1 + level) / 2, static_cast<double>(values.size() - 1)) *
                      StandardError(values);
  const double mean = Mean(values);
  return {mean - half, mean + half};
}

RatioEstimate PairedLogRatio(std::span<const double> a, std::span<const double> b, double level,
                             uint64_t seed, size_t resamples) {
  const std::vector<double> ratios = LogRatios(a, b);
  RatioEstimate estimate;
  estimate.pairs = ratios.size();
  estimate.left_out = a.size() - ratios.size();
  // Equal ratios have this mean exactly; a sum of them may not.
  if (!ratios.empty()) estimate.log_ratio = AllEqual(ratios) ? ratios[0] : Mean(ratios);
  estimate.interval = StudentMean(ratios, level);
  if (ratios.size() > 2) {
    estimate.interval =
        Wider(estimate.interval, BcaMean(ratios, level, seed, resamples, /*expand=*/true));
  }
  return estimate;
}

RatioEstimate UnpairedLogRatio(std::span<const double> a, std::span<const double> b, Center center,
                               double level, uint64_t seed, size_t resamples) {
  const std::vector<double> left = Finite(a, 0), right = Finite(b, 0);
  RatioEstimate estimate;
  estimate.interval = kUnbounded;
  estimate.pairs = std::min(left.size(), right.size());
  estimate.left_out = a.size() + b.size() - left.size() - right.size();
  if (estimate.pairs == 0) return estimate;
  estimate.log_ratio = std::log(CenterOf(right, center)) - std::log(CenterOf(left, center));
  if (estimate.pairs < 2) return estimate;
  if (AllEqual(left) && AllEqual(right)) {
    estimate.interval = {estimate.log_ratio, estimate.log_ratio};
    return estimate;
  }

  const double count_a = static_cast<double>(left.size());
  const double count_b = static_cast<double>(right.size());
  auto error = [&](const std::vector<double>& values) {
    if (AllEqual(values)) return 0.0;
    if (center == Center::kMean) return StandardError(values) / Mean(values);
    std::vector<double> logs = values;
    for (double& value : logs) value = std::log(value);
    return StandardError(logs);
  };
  estimate.interval =
      Welch(estimate.log_ratio, error(left), count_a - 1, error(right), count_b - 1, level);

  Random random(seed);
  std::vector<double> draws(std::max<size_t>(resamples, 1)), draw_a, draw_b;
  for (double& draw : draws) {
    Redraw(left, random, &draw_a);
    Redraw(right, random, &draw_b);
    draw = std::log(CenterOf(draw_b, center)) - std::log(CenterOf(draw_a, center));
  }
  double acceleration = 0;
  if (center == Center::kMean) {
    // Influence of a value on ln(mean b) - ln(mean a), over its sample's size.
    std::vector<double> influences;
    for (double value : left) influences.push_back((1 - value / Mean(left)) / count_a);
    for (double value : right) influences.push_back((value / Mean(right) - 1) / count_b);
    acceleration = Acceleration(influences);
  }
  estimate.interval =
      Wider(estimate.interval, BcaEnds(draws, estimate.log_ratio, acceleration,
                                       UpperQuantile(level, estimate.pairs, /*expand=*/true)));
  return estimate;
}

double WilcoxonSignedRank(std::span<const double> differences) {
  std::vector<double> sizes;
  std::vector<bool> positive;
  for (double difference : differences) {
    if (difference == 0 || std::isnan(difference)) continue;
    sizes.push_back(std::abs(difference));
    positive.push_back(difference > 0);
  }
  if (sizes.empty()) return 1;
  double ties = 0;
  const std::vector<int64_t> ranks = DoubledRanks(sizes, &ties);
  int64_t observed = 0, total = 0;
  for (size_t i = 0; i < ranks.size(); ++i) {
    total += ranks[i];
    if (positive[i]) observed += ranks[i];
  }
  if (sizes.size() > kExactSigns) {
    double squares = 0;  // of the doubled ranks, ties included: the variance is a quarter of it
    for (int64_t rank : ranks) squares += static_cast<double>(rank) * static_cast<double>(rank);
    return NormalTwoSided(static_cast<double>(observed) - static_cast<double>(total) / 2,
                          squares / 4);
  }
  // counts[s]: in how many choices of signs the positive ranks sum to s.
  std::vector<double> counts(static_cast<size_t>(total) + 1);
  counts[0] = 1;
  for (int64_t rank : ranks) {
    for (size_t sum = counts.size(); sum-- > static_cast<size_t>(rank);) {
      counts[sum] += counts[sum - static_cast<size_t>(rank)];
    }
  }
  return TwoSided(counts, observed);
}

double MannWhitney(std::span<const double> a, std::span<const double> b) {
  std::vector<double> all;
  for (double value : a) {
    if (!std::isnan(value)) all.push_back(value);
  }
  const size_t count_a = all.size();
  for (double value : b) {
    if (!std::isnan(value)) all.push_back(value);
  }
  const size_t count_b = all.size() - count_a;
  if (count_a == 0 || count_b == 0) return 1;
  double ties = 0;
  const std::vector<int64_t> ranks = DoubledRanks(all, &ties);
  int64_t observed = 0, total = 0;
  for (size_t i = 0; i < ranks.size(); ++i) {
    total += ranks[i];
    if (i < count_a) observed += ranks[i];
  }
  if (all.size() > kExactValues) {
    const double n = static_cast<double>(all.size());
    const double product = static_cast<double>(count_a) * static_cast<double>(count_b);
    const double variance = product / 12 * (n + 1 - ties / (n * (n - 1)));
    const double expected = static_cast<double>(count_a) * (n + 1) / 2;
    return NormalTwoSided(static_cast<double>(observed) / 2 - expected, variance);
  }
  // counts[k][s]: choices of k values whose doubled ranks sum to s.
  std::vector<std::vector<double>> counts(count_a + 1,
                                          std::vector<double>(static_cast<size_t>(total) + 1));
  counts[0][0] = 1;
  for (int64_t rank : ranks) {
    for (size_t k = count_a; k > 0; --k) {
      for (size_t sum = static_cast<size_t>(total) + 1; sum-- > static_cast<size_t>(rank);) {
        counts[k][sum] += counts[k - 1][sum - static_cast<size_t>(rank)];
      }
    }
  }
  return TwoSided(counts[count_a], observed);
}

std::vector<double> Holm(std::span<const double> p) {
  std::vector<size_t> order;
  for (size_t i = 0; i < p.size(); ++i) {
    if (!std::isnan(p[i])) order.push_back(i);
  }
  std::stable_sort(order.begin(), order.end(), [&](size_t i, size_t j) { return p[i] < p[j]; });
  std::vector<double> adjusted(p.begin(), p.end());
  double highest = 0;
  for (size_t i = 0; i < order.size(); ++i) {
    const double times = static_cast<double>(order.size() - i);
    highest = std::max(highest, std::min(1.0, times * p[order[i]]));
    adjusted[order[i]] = highest;
  }
  return adjusted;
}

double EquivalenceP(std::span<const double> log_ratios, double margin) {
  const std::vector<double> values = Finite(log_ratios);
  if (values.size() < 2 || !(margin > 0)) return 1;
  if (NoSpread(values)) return std::abs(values[0]) < margin ? 0 : 1;
  const double freedom = static_cast<double>(values.size() - 1);
  const double distance = margin - std::abs(Mean(values));  // to the nearer margin: the larger p
  return StudentCdf(-distance / StandardError(values), freedom);
}

double DetectableRatio(std::span<const double> log_ratios, double alpha, double power) {
  const std::vector<double> values = Finite(log_ratios);
  if (values.size() < 2) return kInfinite;
  if (NoSpread(values)) return 0;
  const double n = static_cast<double>(values.size());
  const double critical = StudentQuantile(1 - alpha / 2, n - 1);
  const double shift = StudentShift(power, n - 1, critical);
  return shift * std::sqrt(Variance(values) / n);
}

std::optional<size_t> PairsFor(std::span<const double> log_ratios, double effect, double alpha,
                               double power) {
  const std::vector<double> values = Finite(log_ratios);
  effect = std::abs(effect);
  if (values.size() < 2 || NoSpread(values) || !(effect > 0)) return std::nullopt;
  const double deviation = std::sqrt(Variance(values));
  auto finds = [&](size_t n) {
    return PairedPower(effect, deviation, static_cast<double>(n), alpha) >= power;
  };
  size_t low = 1, high = 2;  // low does not find it, high may
  while (!finds(high)) {
    if (high >= kMaxPairs) return kMaxPairs;
    low = high;
    high *= 2;
  }
  while (high - low > 1) {
    const size_t middle = (low + high) / 2;
    (finds(middle) ? high : low) = middle;
  }
  return high;
}

ChangeVerdict VerdictOf(Interval interval, Interval within, double margin) {
  if (interval.low == 0 && interval.high == 0) return ChangeVerdict::kSame;
  if (within.low > -margin && within.high < margin) return ChangeVerdict::kSame;
  if (interval.low > 0) return ChangeVerdict::kFaster;
  if (interval.high < 0) return ChangeVerdict::kSlower;
  return ChangeVerdict::kCannotTell;
}

double EffectiveCount(std::span<const double> series) {
  const size_t n = series.size();
  const double count = static_cast<double>(n);
  if (n < 4 || AllEqual(series)) return count;
  const double mean = Mean(series);
  auto covariance = [&](size_t lag) {
    double sum = 0;
    for (size_t i = lag; i < n; ++i) sum += (series[i] - mean) * (series[i - lag] - mean);
    return sum / count;
  };
  const double variance = covariance(0);
  if (variance <= 0) return count;
  // Sums of neighbouring pairs of autocorrelations are positive and falling for a reversible chain;
  // what comes after the first that is not is noise.
  double time = -1, previous = kInfinite;
  for (size_t lag = 0; lag + 1 < n; lag += 2) {
    const double pair = (covariance(lag) + covariance(lag + 1)) / variance;
    if (pair <= 0) break;
    previous = std::min(previous, pair);
    time += 2 * previous;
  }
  return std::clamp(count / std::max(time, 1.0), 1.0, count);
}

WindowsEstimate WindowsLogRatio(std::span<const double> a, std::span<const double> b, double level,
                                uint64_t seed, size_t resamples) {
  const std::vector<double> left = KeepMeasured(a), right = KeepMeasured(b);
  WindowsEstimate estimate;
  estimate.interval = kUnbounded;
  estimate.windows_a = left.size();
  estimate.windows_b = right.size();
  estimate.effective_a = EffectiveCount(left);
  estimate.effective_b = EffectiveCount(right);
  const double mean_a = Mean(left), mean_b = Mean(right);
  if (!(mean_a > 0 && mean_b > 0)) return estimate;
  estimate.log_ratio = std::log(mean_b) - std::log(mean_a);
  if (std::min(left.size(), right.size()) < 4) return estimate;
  if (AllEqual(left) && AllEqual(right)) {
    estimate.interval = {estimate.log_ratio, estimate.log_ratio};
    return estimate;
  }

  const size_t block_a = BlockLength(left.size(), estimate.effective_a);
  const size_t block_b = BlockLength(right.size(), estimate.effective_b);
  estimate.block = std::max(block_a, block_b);

  Random random(seed);
  auto draw_mean = [&](const std::vector<double>& values, size_t block) {
    double sum = 0;
    for (size_t index : BlockResample(values.size(), block, random)) sum += values[index];
    return sum / static_cast<double>(values.size());
  };
  std::vector<double> draws;
  for (size_t i = 0; i < std::max<size_t>(resamples, 1); ++i) {
    const double drawn_a = draw_mean(left, block_a), drawn_b = draw_mean(right, block_b);
    // A draw of empty windows alone has no ratio: the ratio is then beyond all others.
    draws.push_back(drawn_a > 0 && drawn_b > 0 ? std::log(drawn_b) - std::log(drawn_a)
                    : drawn_b > 0              ? kInfinite
                                               : -kInfinite);
  }
  const double fewest = std::min(estimate.effective_a, estimate.effective_b);
  const double expanded =
      fewest > 2 ? std::sqrt(fewest / (fewest - 1)) * StudentQuantile((1 + level) / 2, fewest - 1)
                 : NormalQuantile((1 + level) / 2);
  const double tail = NormalCdf(-expanded);
  const Interval drawn = {Quantile(draws, tail), Quantile(draws, 1 - tail)};
  const Interval student =
      Welch(estimate.log_ratio, RelativeError(left, estimate.effective_a),
            std::max(estimate.effective_a - 1, 1.0), RelativeError(right, estimate.effective_b),
            std::max(estimate.effective_b - 1, 1.0), level);
  estimate.interval = Wider(drawn, student);
  return estimate;
}

}  // namespace headrace::analysis
