#include "analysis/statistics/sequential.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <string>

namespace headrace::analysis {
namespace {

constexpr size_t kPairs = 20;
constexpr int kTrials = 2000;

const SequentialPlan& Plan() {
  static const SequentialPlan plan = PlanSequential(kPairs);
  return plan;
}

// ln ratios of equal sides in ABBA or BAAB blocks, in units of their deviation without correlation:
// AR(1) noise from run to run, a linear drift over the series, and a constant that the second run
// of a pair has over the first.
std::vector<double> Blocks(Random& random, double phi, double drift, double second) {
  double noise = random.Normal();
  size_t number = 0;
  auto run = [&] {
    const double value = noise + drift * static_cast<double>(number++) / (2.0 * kPairs);
    noise = phi * noise + std::sqrt(1 - phi * phi) * random.Normal();
    return value;
  };
  std::vector<double> ratios;
  while (ratios.size() < kPairs) {
    double sign = random.Below(2) == 0 ? 1 : -1;
    for (int i = 0; i < 2; ++i, sign = -sign) {
      const double first = run(), later = run() + second;
      ratios.push_back(sign * (later - first) / std::sqrt(2.0));
    }
  }
  return ratios;
}

std::vector<double> Independent(Random& random, double (*draw)(Random&)) {
  std::vector<double> ratios;
  while (ratios.size() < kPairs) ratios.push_back(draw(random));
  return ratios;
}

double Student3(Random& random) {
  double squares = 0;
  for (int i = 0; i < 3; ++i) squares += std::pow(random.Normal(), 2);
  return random.Normal() / std::sqrt(squares / 3);
}

struct Noise {
  const char* name;
  std::function<std::vector<double>(Random&)> draw;
};

const Noise kNoises[] = {
    {"normal", [](Random& r) { return Independent(r, [](Random& x) { return x.Normal(); }); }},
    {"t of 3 degrees", [](Random& r) { return Independent(r, Student3); }},
    {"every tenth ten times as far",
     [](Random& r) {
       return Independent(r, [](Random& x) { return x.Normal() * (x.Uniform() < 0.1 ? 10 : 1); });
     }},
    {"AR(1), 0.5", [](Random& r) { return Blocks(r, 0.5, 0, 0); }},
    {"AR(1), 0.9", [](Random& r) { return Blocks(r, 0.9, 0, 0); }},
    {"drift", [](Random& r) { return Blocks(r, 0, 10, 0); }},
    {"second run warmer, AR(1)", [](Random& r) { return Blocks(r, 0.3, 3, 1); }},
};

struct Outcomes {
  double different = 0, same = 0, covered = 0, pairs = 0;  // shares; mean number
};

Outcomes Try(const Noise& noise, double effect, double margin, uint64_t seed) {
  Random random(seed);
  Outcomes all;
  const double each = 1.0 / kTrials;
  for (int trial = 0; trial < kTrials; ++trial) {
    SequentialTest test(Plan(), margin);
    for (double ratio : noise.draw(random)) {
      if (test.Add(ratio + effect).stop) break;
    }
    all.different += each * (test.step().why == StopReason::kDifference);
    all.same += each * (test.step().why == StopReason::kSame);
    all.covered += each * (test.interval().low <= effect && test.interval().high >= effect);
    all.pairs += each * static_cast<double>(test.pairs());
  }
  return all;
}

// 5 % and 2.6 standard errors of as many trials.
const double kFivePercent = 0.05 + 2.6 * std::sqrt(0.05 * 0.95 / kTrials);

TEST(Sequential, FalseAlarmsOverAllLooksAreWithinAlpha) {
  const uint64_t seed = 21;
  for (const Noise& noise : kNoises) {
    const Outcomes outcomes = Try(noise, 0, 0, seed);
    EXPECT_LE(outcomes.different, kFivePercent) << noise.name << ", seed " << seed;
    EXPECT_GE(outcomes.covered, 1 - kFivePercent) << noise.name << ", seed " << seed;
  }
}

// What a test of each look at 5 % would do: the reason for all this. Holds the trials to account.
TEST(Sequential, LookingWithoutCorrectionWouldNotHold) {
  Random random(21);
  int alarms = 0;
  for (int trial = 0; trial < kTrials; ++trial) {
    const std::vector<double> ratios = kNoises[0].draw(random);
    bool alarm = false;
    for (size_t pairs = 4; pairs <= kPairs; pairs += 2) {
      const Interval interval = StudentMean(std::span(ratios).first(pairs), 0.95);
      alarm = alarm || interval.low > 0 || interval.high < 0;
    }
    alarms += alarm;
  }
  EXPECT_GT(alarms, 0.12 * kTrials);
}

TEST(Sequential, TheIntervalAtTheStopCoversTheEffect) {
  const uint64_t seed = 5;
  for (const Noise& noise : kNoises) {
    for (double effect : {0.7, 2.0}) {
      EXPECT_GE(Try(noise, effect, 0.5, seed).covered, 1 - kFivePercent)
          << noise.name << ", effect " << effect << ", seed " << seed;
    }
  }
}

TEST(Sequential, SidesAtTheMarginAreSeldomCalledTheSame) {
  const uint64_t seed = 6;
  for (const Noise& noise : kNoises) {
    const Outcomes at = Try(noise, 0.9, 0.9, seed);
    EXPECT_LE(at.same, kFivePercent) << noise.name << ", seed " << seed;
  }
}

TEST(Sequential, FindsAndStopsEarly) {
  const uint64_t seed = 7;
  const Outcomes large = Try(kNoises[0], 3, 0, seed);  // 3 % at a deviation of 1 %
  EXPECT_GE(large.different, 0.999) << "seed " << seed;
  EXPECT_LE(large.pairs, 6) << "seed " << seed;
  const Outcomes medium = Try(kNoises[0], 1.5, 0, seed);
  EXPECT_GE(medium.different, 0.98) << "seed " << seed;
  const Outcomes same = Try(kNoises[0], 0, 1.5, seed);
  EXPECT_GE(same.same, 0.9) << "seed " << seed;
  EXPECT_LE(same.pairs, 12) << "seed " << seed;
}

TEST(Sequential, FindsAmongOutliersWhatTMisses) {
  const uint64_t seed = 9;
  const Noise& outlying = kNoises[2];
  Random random(seed);
  int by_t = 0;  // at the end alone, where t is at its best
  for (int trial = 0; trial < kTrials; ++trial) {
    std::vector<double> ratios = outlying.draw(random);
    for (double& ratio : ratios) ratio += 1.5;
    by_t += StudentMean(ratios, 0.95).low > 0;
  }
  EXPECT_GE(Try(outlying, 1.5, 0, seed).different, by_t / double{kTrials} + 0.05)
      << "seed " << seed;
}

TEST(Sequential, EqualRatiosNeedNoSpread) {
  SequentialTest same(Plan(), 0);
  SequentialTest faster(Plan(), 0.01);
  for (int i = 0; i < 3; ++i) {
    EXPECT_FALSE(same.Add(0).stop);
    EXPECT_FALSE(faster.Add(0.3).stop);
  }
  EXPECT_EQ(same.Add(0).why, StopReason::kSame) << "identical, though there is no margin";
  EXPECT_EQ(same.verdict(), ChangeVerdict::kSame);
  EXPECT_EQ(faster.Add(0.3).why, StopReason::kDifference);
  EXPECT_EQ(faster.verdict(), ChangeVerdict::kFaster);
  EXPECT_EQ(faster.interval().low, 0.3);
  EXPECT_EQ(faster.estimate(), 0.3);
}

TEST(Sequential, MissingPairsAreCountedAndTakeNoPart) {
  SequentialTest test(Plan(), 0);
  for (int i = 0; i < 10; ++i) EXPECT_FALSE(test.Add(std::nan("")).stop);
  EXPECT_FALSE(test.Add(INFINITY).stop);
  EXPECT_EQ(test.left_out(), 11u);
  EXPECT_EQ(test.pairs(), 0u);
  EXPECT_TRUE(std::isinf(test.interval().low));
  EXPECT_EQ(test.Close().why, StopReason::kMaximum);
}

TEST(Sequential, NothingChangesAfterTheStop) {
  SequentialTest test(Plan(), 0);
  for (double ratio : {0.030, 0.031, 0.029, 0.030}) test.Add(ratio);
  ASSERT_EQ(test.step().why, StopReason::kDifference);
  const Interval interval = test.interval();
  EXPECT_EQ(test.Add(-5).why, StopReason::kDifference);
  EXPECT_EQ(test.Close().why, StopReason::kDifference);
  EXPECT_EQ(test.pairs(), 4u);
  EXPECT_EQ(test.interval().low, interval.low);
}

TEST(Sequential, GivesUpWhatTheMaximumWouldHardlyDecide) {
  Random random(4);
  SequentialTest test(PlanSequential(40), 0.001);
  while (!test.Add(0.05 * random.Normal()).stop) {
  }
  EXPECT_EQ(test.step().why, StopReason::kFutile);
  EXPECT_LT(test.pairs(), 40u);
  EXPECT_LT(test.decides(), 0.05);
  EXPECT_EQ(test.verdict(), ChangeVerdict::kCannotTell);
}

TEST(Sequential, FewPlannedPairsAreLookedAtOnce) {
  for (size_t pairs : {2u, 3u}) {
    SequentialTest test(pairs, 0.05, 0);
    for (size_t i = 0; i + 1 < pairs; ++i) EXPECT_FALSE(test.Add(0.01).stop);
    EXPECT_EQ(test.Add(0.02).why, StopReason::kMaximum);
    EXPECT_LT(test.interval().low, 0);
    EXPECT_GT(test.interval().high, 0.02);
  }
}

// Two pairs of a plan of two are an ordinary t test of pairs with the blocks' correlation.
TEST(Sequential, OneLookIsTheTTest) {
  const SequentialPlan plan = PlanSequential(3);
  ASSERT_EQ(plan.looks.size(), 1u);
  EXPECT_NEAR(plan.looks[0].difference.t, 4.303, 0.45) << "t of 2 degrees at 97.5 %";
  EXPECT_LT(plan.looks[0].same.t, plan.looks[0].difference.t);
}

TEST(Sequential, ClosingSpendsWhatIsLeft) {
  // After six pairs of twenty the bound is far out; where they are all there is, it is nearer.
  SequentialTest going(Plan(), 0), closed(Plan(), 0);
  for (double ratio : {0.010, 0.030, 0.022, 0.004, 0.026, 0.012}) {
    ASSERT_FALSE(going.Add(ratio).stop);
    closed.Add(ratio);
  }
  EXPECT_EQ(closed.Close().why, StopReason::kDifference);
  EXPECT_GT(closed.interval().low, going.interval().low);
  EXPECT_LT(closed.interval().high, going.interval().high);
}

TEST(Sequential, ClosingAtATimeKeepsFalseAlarmsWithinAlpha) {
  // The looks of a plan that ends at seven pairs of twenty, by their bounds.
  const uint64_t seed = 13;
  SequentialTest bounds(Plan(), 0);
  for (double ratio : {1.0, -1.0, 1.1, -1.1, 0.9, -0.9, 0.0}) bounds.Add(ratio);
  bounds.Close();
  const double half = (bounds.interval().high - bounds.interval().low) / 2;
  std::vector<double> seven = {1.0, -1.0, 1.1, -1.1, 0.9, -0.9, 0.0};
  const double last = half / std::sqrt(Variance(seven) / 7);
  Random random(seed);
  int alarms = 0;
  for (int trial = 0; trial < kTrials; ++trial) {
    const std::vector<double> ratios = Independent(random, [](Random& x) { return x.Normal(); });
    bool alarm = false;
    for (const SequentialPlan::Look& look : Plan().looks) {
      const size_t pairs = std::min<size_t>(look.pairs, 7);
      const auto part = std::span(ratios).first(pairs);
      const double bound = look.pairs < 7 ? look.difference.t : last;
      const double n = static_cast<double>(pairs);
      alarm = alarm || std::abs(Mean(part)) > bound * std::sqrt(Variance(part) / n);
      if (look.pairs >= 7) break;
    }
    alarms += alarm;
  }
  EXPECT_LE(alarms, kFivePercent * kTrials) << "seed " << seed;
  EXPECT_GE(alarms, 0.02 * kTrials) << "spends hardly anything, seed " << seed;
}

TEST(Sequential, PlansAreTheSameForOneSeed) {
  const SequentialPlan again = PlanSequential(kPairs);
  ASSERT_EQ(again.looks.size(), Plan().looks.size());
  size_t previous = 0;
  for (size_t i = 0; i < again.looks.size(); ++i) {
    EXPECT_EQ(again.looks[i].difference.t, Plan().looks[i].difference.t);
    EXPECT_EQ(again.looks[i].difference.rank_sum, Plan().looks[i].difference.rank_sum);
    EXPECT_GT(again.looks[i].pairs, previous);
    previous = again.looks[i].pairs;
  }
  EXPECT_EQ(previous, kPairs);
}

// The bounds go on smoothly where the paths become normal deviates and ranks end.
TEST(Sequential, PlansOfManyPairsAreLikeThoseOfFew) {
  const SequentialPlan plan = PlanSequential(3000);
  EXPECT_LT(plan.looks.size(), 120u);
  double previous = 0;
  for (const SequentialPlan::Look& look : plan.looks) {
    EXPECT_EQ(look.ranks, look.pairs >= 10 && look.pairs <= 1000) << look.pairs;
    if (look.pairs >= 30) {
      EXPECT_GT(look.difference.deviate, 2.2) << look.pairs;
      EXPECT_LT(look.difference.deviate, 4.6) << look.pairs;
      if (previous > 0) {
        EXPECT_NEAR(look.difference.deviate, previous, 0.35) << look.pairs;
      }
      previous = look.difference.deviate;
    }
  }
  // The last ones of a plan are worth about as much, however long it is.
  EXPECT_NEAR(previous, PlanSequential(40).looks.back().difference.deviate, 0.25);
}

}  // namespace
}  // namespace headrace::analysis
