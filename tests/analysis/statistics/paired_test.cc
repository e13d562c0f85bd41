#include "analysis/statistics/paired.h"

#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>

namespace headrace::analysis {
namespace {

using nlohmann::json;

const double kMissing = std::nan("");

const json& Golden() {
  static const json golden = json::parse(
      std::ifstream(std::string(HEADRACE_SOURCE_DIR) + "/tests/data/statistics/golden.json"));
  return golden;
}

std::vector<double> Values(const json& list) {
  std::vector<double> values;
  for (const json& value : list) values.push_back(value.is_null() ? kMissing : value.get<double>());
  return values;
}

TEST(SignedRank, EqualsSciPy) {
  size_t cases = 0;
  for (const json& one : Golden()["signed_rank"]) {
    EXPECT_NEAR(WilcoxonSignedRank(Values(one["differences"])), one["p"], 1e-12) << one["name"];
    ++cases;
  }
  EXPECT_GE(cases, 15u);
}

TEST(SignedRank, IsTheSameWithSidesExchanged) {
  std::vector<double> turned = Values(Golden()["signed_rank"][8]["differences"]);
  const double p = WilcoxonSignedRank(turned);
  for (double& value : turned) value = -value;
  EXPECT_EQ(WilcoxonSignedRank(turned), p);
}

TEST(MannWhitneyTest, EqualsSciPy) {
  size_t cases = 0;
  for (const json& one : Golden()["mann_whitney"]) {
    EXPECT_NEAR(MannWhitney(Values(one["a"]), Values(one["b"])), one["p"], 1e-12) << one["name"];
    ++cases;
  }
  EXPECT_GE(cases, 10u);
}

TEST(Equivalence, EqualsSciPy) {
  for (const json& one : Golden()["tost"]) {
    EXPECT_NEAR(EquivalenceP(Values(one["values"]), one["margin"]), one["p"], 1e-10) << one["name"];
  }
}

TEST(Equivalence, WithoutSpreadOrMarginIsPlain) {
  const std::vector<double> equal(5, 0.01), one = {0.0}, spread = {-0.01, 0.01, 0.02};
  EXPECT_EQ(EquivalenceP(equal, 0.02), 0);
  EXPECT_EQ(EquivalenceP(equal, 0.01), 1) << "at the margin is not within";
  EXPECT_EQ(EquivalenceP(one, 0.02), 1);
  EXPECT_EQ(EquivalenceP(spread, 0), 1);
  EXPECT_EQ(EquivalenceP({}, 0.02), 1);
}

TEST(Power, EqualsSciPysNoncentralT) {
  for (const json& one : Golden()["power"]) {
    const std::vector<double> values = Values(one["values"]);
    EXPECT_NEAR(
        DetectableRatio(values, one["alpha"], one["power"]) / one["detectable"].get<double>(), 1,
        1e-6)
        << one["name"];
    EXPECT_EQ(PairsFor(values, one["effect"], one["alpha"], one["power"]),
              one["pairs"].get<size_t>())
        << one["name"];
  }
}

TEST(Power, SaysNothingWithoutSpread) {
  const std::vector<double> equal(4, 0.1), one = {0.1}, tiny = {0.1, std::nextafter(0.1, 1)};
  EXPECT_EQ(PairsFor(equal, 0.03), std::nullopt);
  EXPECT_EQ(PairsFor(one, 0.03), std::nullopt);
  EXPECT_EQ(PairsFor(std::vector<double>{0.1, 0.2}, 0), std::nullopt);
  EXPECT_EQ(DetectableRatio(equal), 0);
  EXPECT_TRUE(std::isinf(DetectableRatio(one)));
  EXPECT_LT(DetectableRatio(tiny), 1e-12);
  EXPECT_GT(PairsFor(std::vector<double>{1e6, -1e6}, 1e-6), 1'000'000u) << "ends, and is large";
}

TEST(Student, EqualsSciPy) {
  for (const json& one : Golden()["student"]) {
    const Interval interval = StudentMean(Values(one["values"]), one["level"]);
    EXPECT_NEAR(interval.low, one["low"], 1e-10) << one["name"];
    EXPECT_NEAR(interval.high, one["high"], 1e-10) << one["name"];
  }
}

// Both draw at random: SciPy's 200,000 resamples against ours.
TEST(Bca, EqualsSciPyWithinTheNoiseOfResampling) {
  for (const json& one : Golden()["bca"]) {
    const Interval interval = BcaMean(Values(one["values"]), one["level"], 7, 100000, false);
    const double low = one["low"], high = one["high"];
    // Means of 15 whole numbers lie on a grid: the ends may be a step apart.
    const double step = one["name"] == "ties" ? 1.0 / 15 + 1e-9 : 0;
    EXPECT_NEAR(interval.low, low, 0.02 * (high - low) + step) << one["name"];
    EXPECT_NEAR(interval.high, high, 0.02 * (high - low) + step) << one["name"];
  }
}

TEST(HolmTest, AdjustsInTheOrderGiven) {
  struct Case {
    const char* name;
    std::vector<double> p, adjusted;
  };
  const Case cases[] = {
      {"none", {}, {}},
      {"one", {0.03}, {0.03}},
      {"steps down", {0.01, 0.04, 0.03}, {0.03, 0.06, 0.06}},  // 3*.01, then 2*.03 over 1*.04
      {"at most 1", {0.6, 0.7}, {1, 1}},
      {"ties", {0.02, 0.02}, {0.04, 0.04}},
      {"never falls", {0.001, 0.5, 0.4, 0.01}, {0.004, 0.8, 0.8, 0.03}},
  };
  for (const Case& one : cases) {
    const std::vector<double> adjusted = Holm(one.p);
    ASSERT_EQ(adjusted.size(), one.adjusted.size()) << one.name;
    for (size_t i = 0; i < adjusted.size(); ++i) {
      EXPECT_NEAR(adjusted[i], one.adjusted[i], 1e-15) << one.name << ", " << i;
    }
  }
  const std::vector<double> partly = Holm(std::vector<double>{0.02, kMissing, 0.03});
  EXPECT_NEAR(partly[0], 0.04, 1e-15) << "a test that was not made does not count";
  EXPECT_TRUE(std::isnan(partly[1]));
}

TEST(PairedRatio, OfOneHalfIsItsLogarithmWithAPoint) {
  const std::vector<double> a = {2, 4, 8, 16}, b = {1, 2, 4, 8};
  const RatioEstimate estimate = PairedLogRatio(a, b);
  EXPECT_DOUBLE_EQ(estimate.log_ratio, -std::log(2));
  EXPECT_DOUBLE_EQ(estimate.interval.low, -std::log(2));
  EXPECT_DOUBLE_EQ(estimate.interval.high, -std::log(2));
  EXPECT_EQ(estimate.pairs, 4u);
}

TEST(PairedRatio, AllEqualIsExactlyNone) {
  const std::vector<double> same(12, 1262.7);
  const RatioEstimate estimate = PairedLogRatio(same, same);
  EXPECT_EQ(estimate.log_ratio, 0);
  EXPECT_EQ(estimate.interval.low, 0);
  EXPECT_EQ(estimate.interval.high, 0);
  EXPECT_EQ(VerdictOf(estimate.interval, estimate.interval, 0), ChangeVerdict::kSame);
}

TEST(PairedRatio, LeavesOutAndCountsPairsWithAMissingSide) {
  const std::vector<double> a = {100, kMissing, 100, 0, 100, INFINITY};
  const std::vector<double> b = {103, 105, kMissing, 100, 101, 100};
  const RatioEstimate estimate = PairedLogRatio(a, b);
  EXPECT_EQ(estimate.pairs, 2u);
  EXPECT_EQ(estimate.left_out, 4u);
  EXPECT_NEAR(estimate.log_ratio, (std::log(1.03) + std::log(1.01)) / 2, 1e-15);
}

TEST(PairedRatio, OfFewPairsIsAsWideAsStudents) {
  const std::vector<double> a = {100, 100}, b = {102, 103};
  const RatioEstimate two = PairedLogRatio(a, b);
  const Interval student = StudentMean(LogRatios(a, b), 0.95);
  EXPECT_EQ(two.interval.low, student.low);
  EXPECT_EQ(two.interval.high, student.high);
  EXPECT_LT(two.interval.low, 0) << "two pairs show nothing";
  const RatioEstimate one = PairedLogRatio(std::vector<double>{100}, std::vector<double>{102});
  EXPECT_TRUE(std::isinf(one.interval.low) && std::isinf(one.interval.high));
  const RatioEstimate none = PairedLogRatio({}, {});
  EXPECT_EQ(none.log_ratio, 0);
  EXPECT_TRUE(std::isinf(none.interval.low));
}

TEST(PairedRatio, IsTheSameForOneSeed) {
  const std::vector<double> a = {100, 101, 99, 100, 102, 98}, b = {103, 102, 104, 101, 103, 102};
  const RatioEstimate once = PairedLogRatio(a, b, 0.95, 5), again = PairedLogRatio(a, b, 0.95, 5);
  EXPECT_EQ(once.interval.low, again.interval.low);
  EXPECT_EQ(once.interval.high, again.interval.high);
}

double Outlying(Random& random) { return random.Normal() * (random.Uniform() < 0.1 ? 10 : 1); }

// The reason for taking the wider of two: with plain BCa this fails at every row.
TEST(PairedRatio, CoversUnderNormalAndOutlyingNoise) {
  constexpr int kTrials = 1500;
  const uint64_t seed = 11;
  for (bool outlying : {false, true}) {
    for (size_t n : {4u, 10u, 20u}) {
      Random random(seed);
      int covered = 0;
      for (int trial = 0; trial < kTrials; ++trial) {
        std::vector<double> a(n, 1.0), b;
        for (size_t i = 0; i < n; ++i) {
          b.push_back(std::exp(0.01 * (outlying ? Outlying(random) : random.Normal())));
        }
        const Interval interval = PairedLogRatio(a, b, 0.95, random.Next(), 400).interval;
        covered += interval.low <= 0 && interval.high >= 0;
      }
      // 93.5 %: 95 % less 2.7 standard errors.
      EXPECT_GE(covered, 0.935 * kTrials)
          << (outlying ? "outlying" : "normal") << ", n = " << n << ", seed " << seed;
    }
  }
}

TEST(UnpairedRatio, OfKnownCases) {
  const std::vector<double> a = {100, 110, 90, 100, 105}, b = {200, 190, 210, 205, 220, 195};
  for (Center center : {Center::kMean, Center::kMedian}) {
    const RatioEstimate estimate = UnpairedLogRatio(a, b, center);
    EXPECT_NEAR(estimate.log_ratio, std::log(2), 0.03);
    EXPECT_LT(estimate.interval.low, estimate.log_ratio);
    EXPECT_GT(estimate.interval.high, estimate.log_ratio);
    EXPECT_GT(estimate.interval.low, 0.5);
    EXPECT_LT(estimate.interval.high, 0.9);
    EXPECT_EQ(estimate.pairs, 5u);
  }
  const std::vector<double> equal(3, 7.0), twice(4, 14.0);
  const RatioEstimate point = UnpairedLogRatio(equal, twice);
  EXPECT_DOUBLE_EQ(point.interval.low, std::log(2));
  EXPECT_DOUBLE_EQ(point.interval.high, std::log(2));
  const RatioEstimate missing = UnpairedLogRatio(std::vector<double>{kMissing, 3}, twice);
  EXPECT_TRUE(std::isinf(missing.interval.high));
  EXPECT_EQ(missing.left_out, 1u);
}

TEST(UnpairedRatio, CoversForMeansAndMedians) {
  constexpr int kTrials = 1000;
  const uint64_t seed = 3;
  for (Center center : {Center::kMean, Center::kMedian}) {
    for (size_t n : {3u, 8u, 20u}) {
      Random random(seed);
      int covered = 0;
      for (int trial = 0; trial < kTrials; ++trial) {
        std::vector<double> a, b;
        for (size_t i = 0; i < n; ++i) a.push_back(random.LogNormal(100, 0.05));
        for (size_t i = 0; i < n + 2; ++i) b.push_back(random.LogNormal(100, 0.02));
        const Interval interval = UnpairedLogRatio(a, b, center, 0.95, random.Next(), 400).interval;
        covered += interval.low <= 0 && interval.high >= 0;
      }
      EXPECT_GE(covered, 0.93 * kTrials)
          << (center == Center::kMean ? "mean" : "median") << ", n = " << n << ", seed " << seed;
    }
  }
}

TEST(VerdictWords, OfIntervals) {
  struct Case {
    const char* name;
    Interval interval, within;
    double margin;
    ChangeVerdict verdict;
  };
  const Case cases[] = {
      {"above 0", {0.01, 0.05}, {0.015, 0.045}, 0.01, ChangeVerdict::kFaster},
      {"below 0", {-0.05, -0.01}, {-0.045, -0.015}, 0.01, ChangeVerdict::kSlower},
      {"within", {-0.005, 0.006}, {-0.004, 0.005}, 0.01, ChangeVerdict::kSame},
      {"proven but within", {0.002, 0.006}, {0.003, 0.005}, 0.01, ChangeVerdict::kSame},
      {"wide", {-0.05, 0.06}, {-0.04, 0.05}, 0.01, ChangeVerdict::kCannotTell},
      {"no margin", {-0.005, 0.006}, {-0.004, 0.005}, 0, ChangeVerdict::kCannotTell},
      {"of one pair", kUnbounded, kUnbounded, 0.01, ChangeVerdict::kCannotTell},
      {"identical", {0, 0}, {0, 0}, 0, ChangeVerdict::kSame},
  };
  for (const Case& one : cases) {
    EXPECT_EQ(VerdictOf(one.interval, one.within, one.margin), one.verdict) << one.name;
  }
}

std::vector<double> Correlated(Random& random, size_t n, double phi, double cv) {
  std::vector<double> series;
  double state = random.Normal();
  for (size_t i = 0; i < n; ++i) {
    state = phi * state + std::sqrt(1 - phi * phi) * random.Normal();
    series.push_back(1000 * (1 + cv * state));
  }
  return series;
}

TEST(Windows, EffectiveCountFollowsTheCorrelation) {
  const uint64_t seed = 4;
  for (double phi : {0.0, 0.5, 0.8}) {
    Random random(seed);
    double sum = 0;
    for (int i = 0; i < 50; ++i) sum += EffectiveCount(Correlated(random, 400, phi, 0.05));
    const double truth = 400 * (1 - phi) / (1 + phi);  // of an AR(1) series
    EXPECT_NEAR(sum / 50 / truth, 1, 0.25) << "phi " << phi << ", seed " << seed;
  }
  EXPECT_EQ(EffectiveCount(std::vector<double>(9, 2.0)), 9);
  EXPECT_EQ(EffectiveCount({}), 0);
}

TEST(Windows, RatioCoversUnderAutocorrelation) {
  constexpr int kTrials = 400;
  const uint64_t seed = 8;
  for (double phi : {0.0, 0.6}) {
    for (size_t n : {20u, 60u}) {
      Random random(seed);
      int covered = 0;
      for (int trial = 0; trial < kTrials; ++trial) {
        const std::vector<double> a = Correlated(random, n, phi, 0.05);
        const std::vector<double> b = Correlated(random, n + 10, phi, 0.05);
        const Interval interval = WindowsLogRatio(a, b, 0.95, random.Next(), 300).interval;
        covered += interval.low <= 0 && interval.high >= 0;
      }
      EXPECT_GE(covered, 0.9 * kTrials) << "phi " << phi << ", n = " << n << ", seed " << seed;
    }
  }
}

TEST(Windows, TooFewOrNoneSayNothing) {
  const std::vector<double> few = {1, 2, 3}, many(20, 5.0), none;
  EXPECT_TRUE(std::isinf(WindowsLogRatio(few, many).interval.low));
  EXPECT_NEAR(WindowsLogRatio(few, many).log_ratio, std::log(2.5), 1e-12);
  EXPECT_TRUE(std::isinf(WindowsLogRatio(none, many).interval.high));
  EXPECT_EQ(WindowsLogRatio(none, many).log_ratio, 0);
  const WindowsEstimate equal = WindowsLogRatio(many, many);
  EXPECT_EQ(equal.interval.low, 0);
  EXPECT_EQ(equal.interval.high, 0);
}

}  // namespace
}  // namespace headrace::analysis
