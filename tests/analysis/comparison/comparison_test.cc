// What two sides say about one another: verdicts, families of metrics, what is left out, gates.
#include "analysis/comparison/comparison.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>

#include "analysis/statistics/statistics.h"
#include "base/error.h"

namespace headrace::analysis {
namespace {

using testing::HasSubstr;

RunFigures Figures(double rows_per_s, double wait = 0.4, double cpu = 1e-4, double rss = 8e8) {
  RunFigures figures;
  for (std::string& reason : figures.reasons) reason = "not in this test";
  const auto put = [&](Figure figure, double value) {
    figures.values[static_cast<size_t>(figure)] = value;
  };
  put(Figure::kRowsPerSecond, rows_per_s);
  put(Figure::kWait, wait);
  put(Figure::kCpuPerRow, cpu);
  put(Figure::kPeakRss, rss);
  figures.steady_windows = 10;
  return figures;
}

// `pairs` pairs whose B is `ratio` times as fast, with noise of that deviation on each run.
ComparisonInput Pairs(size_t pairs, double ratio, double noise, uint64_t seed = 7) {
  Random random(seed);
  ComparisonInput input;
  input.a.label = "A";
  input.b.label = "B";
  for (size_t i = 0; i < pairs; ++i) {
    const auto run = [&](double by) {
      return Figures(1000 * by * std::exp(noise * random.Normal()),
                     0.4 + 0.1 * noise * random.Normal(), 1e-4 * std::exp(noise * random.Normal()),
                     8e8 * std::exp(noise * random.Normal()));
    };
    const auto id = static_cast<int64_t>(2 * i);
    input.a.samples.push_back({id + 1, run(1), ""});
    input.b.samples.push_back({id + 2, run(ratio), ""});
    input.b_first.push_back(i % 4 == 1 || i % 4 == 2);
  }
  return input;
}

TEST(Comparison, WordsOfARate) {
  const struct {
    const char* name;
    double ratio, noise;
    ChangeVerdict verdict;
    const char* word;
  } cases[] = {
      {"much faster", 1.8, 0.01, ChangeVerdict::kFaster, "faster"},
      {"slower", 0.9, 0.01, ChangeVerdict::kSlower, "slower"},
      {"the same", 1.0, 0.005, ChangeVerdict::kSame, "same within 3 %"},
      {"proven but small", 1.01, 0.001, ChangeVerdict::kSame, "same within 3 %"},
      {"noisy", 1.0, 0.3, ChangeVerdict::kCannotTell, "cannot tell"},
  };
  for (const auto& one : cases) {
    const Comparison comparison = Compare(Pairs(12, one.ratio, one.noise));
    const ComparedMetric& rate = comparison.metrics.at(0);
    EXPECT_EQ(rate.figure, Figure::kRowsPerSecond);
    EXPECT_EQ(rate.verdict, one.verdict) << one.name;
    EXPECT_EQ(rate.word, one.word) << one.name;
    EXPECT_LE(rate.interval.low, *rate.change) << one.name;
    EXPECT_GE(rate.interval.high, *rate.change) << one.name;
    EXPECT_EQ(comparison.units, 12u);
    EXPECT_TRUE(comparison.too_few.empty());
  }
}

TEST(Comparison, OtherMetricsHaveWordsOfTheirOwnDirection) {
  ComparisonInput input = Pairs(12, 1.0, 0.002);
  for (size_t i = 0; i < 12; ++i) {
    RunFigures& b = input.b.samples[i].figures;
    b.values[static_cast<size_t>(Figure::kWait)] = 0.05 + 0.001 * static_cast<double>(i % 3);
    b.values[static_cast<size_t>(Figure::kPeakRss)] = 9e8 + 1e5 * static_cast<double>(i);
  }
  const Comparison comparison = Compare(input);
  const ComparedMetric* wait = comparison.Find(Figure::kWait);
  ASSERT_NE(wait, nullptr);
  EXPECT_EQ(wait->word, "less waiting");
  EXPECT_EQ(wait->verdict, ChangeVerdict::kFaster);  // better
  EXPECT_NEAR(*wait->change, -0.349, 0.003);         // a difference of shares, no ratio
  const ComparedMetric* rss = comparison.Find(Figure::kPeakRss);
  ASSERT_NE(rss, nullptr);
  EXPECT_EQ(rss->word, "more memory");
  EXPECT_EQ(rss->verdict, ChangeVerdict::kSlower);  // worse
  EXPECT_EQ(comparison.Find(Figure::kElapsed), nullptr);
}

// Whatever the numbers: with the sides exchanged every change, interval and verdict is the
// opposite, and no p value differs.
TEST(Comparison, ExchangingTheSidesNegates) {
  Random seeds(20261122);
  const SequentialPlan plan = PlanSequential(16, 0.05);
  for (int trial = 0; trial < 60; ++trial) {
    const uint64_t seed = seeds.Next();
    Random random(seed);
    ComparisonInput input =
        Pairs(2 + random.Below(14), std::exp(0.1 * random.Normal()), 0.05 * random.Uniform(), seed);
    input.seed = 1 + random.Below(1000);
    const ComparedUnit units[] = {ComparedUnit::kPair, ComparedUnit::kRun, ComparedUnit::kBlock};
    input.unit = units[trial % 3];
    input.planned_pairs = trial % 2 == 0 ? 0 : 16;
    ComparisonInput swapped = input;
    std::swap(swapped.a.samples, swapped.b.samples);
    for (size_t i = 0; i < swapped.b_first.size(); ++i) swapped.b_first[i] = !input.b_first[i];
    const Comparison one = Compare(input, &plan), other = Compare(swapped, &plan);
    ASSERT_EQ(one.metrics.size(), other.metrics.size());
    for (size_t m = 0; m < one.metrics.size(); ++m) {
      const ComparedMetric &x = one.metrics[m], &y = other.metrics[m];
      const std::string where =
          fmt::format("seed {} trial {} {}", seed, trial, InfoOf(x.figure).key);
      ASSERT_EQ(x.change.has_value(), y.change.has_value()) << where;
      EXPECT_EQ(x.a, y.b) << where;
      if (!x.change) continue;
      EXPECT_NEAR(*x.change, -*y.change, 1e-9) << where;
      if (std::isfinite(x.interval.low)) {
        // Resampling draws other values for the same quantiles: equal but for its grain, which is
        // coarse where each side of few units is drawn for itself.
        const double grain =
            (input.unit == ComparedUnit::kPair ? 0.05 : 0.3) * (x.interval.high - x.interval.low) +
            1e-9;
        EXPECT_NEAR(x.interval.low, -y.interval.high, grain) << where;
        EXPECT_NEAR(x.interval.high, -y.interval.low, grain) << where;
      }
      ASSERT_EQ(x.p.has_value(), y.p.has_value()) << where;
      if (x.p) {
        EXPECT_NEAR(*x.p, *y.p, 1e-9) << where;
      }
    }
    if (one.order) {
      ASSERT_TRUE(other.order) << seed;
      EXPECT_NEAR(one.order->change, other.order->change, 1e-9) << seed;
    }
    EXPECT_EQ(one.noise.has_value(), other.noise.has_value());
  }
}

TEST(Comparison, TooFewPairsGiveNoVerdict) {
  for (const size_t pairs : {1u, 2u, 3u}) {
    const Comparison comparison = Compare(Pairs(pairs, 3, 0.001));
    EXPECT_THAT(comparison.too_few, HasSubstr(fmt::format("{} pair{} cannot prove a change", pairs,
                                                          pairs == 1 ? "" : "s")));
    EXPECT_EQ(comparison.metrics[0].verdict, ChangeVerdict::kCannotTell);
    EXPECT_EQ(comparison.metrics[0].a_values.size(), pairs);  // the raw values are there
  }
  ComparisonInput sets = Pairs(2, 3, 0.001);
  sets.unit = ComparedUnit::kRun;
  EXPECT_THAT(Compare(sets).too_few, HasSubstr("is 0.33 at best"));
}

TEST(Comparison, TiesAndZeroVarianceAreExact) {
  const Comparison same = Compare(Pairs(12, 1, 0));
  EXPECT_TRUE(same.metrics[0].identical);
  EXPECT_EQ(same.metrics[0].word, "identical");
  EXPECT_EQ(same.metrics[0].verdict, ChangeVerdict::kSame);
  EXPECT_EQ(*same.metrics[0].change, 0);
  // One exact ratio in all pairs.
  const Comparison doubled = Compare(Pairs(12, 2, 0));
  EXPECT_EQ(doubled.metrics[0].verdict, ChangeVerdict::kFaster);
  EXPECT_NEAR(*doubled.metrics[0].change, std::log(2), 1e-12);
  EXPECT_FALSE(doubled.metrics[0].identical);
  for (const Comparison* comparison : {&same, &doubled}) {
    for (const ComparedMetric& metric : comparison->metrics) {
      EXPECT_FALSE(metric.p && std::isnan(*metric.p));
      EXPECT_FALSE(std::isnan(metric.interval.low) || std::isnan(metric.interval.high));
    }
  }
}

TEST(Comparison, AMetricThatIsMissingSomewhereLosesItsPairsOnly) {
  ComparisonInput input = Pairs(12, 1.5, 0.01);
  const auto cpu = static_cast<size_t>(Figure::kCpuPerRow);
  for (const size_t i : {0u, 3u}) input.b.samples[i].figures.values[cpu].reset();
  input.a.samples[5].figures.values[static_cast<size_t>(Figure::kRowsPerSecond)].reset();
  const Comparison comparison = Compare(input);
  EXPECT_EQ(comparison.units, 11u);
  EXPECT_EQ(comparison.Find(Figure::kCpuPerRow)->a_values.size(), 9u);
  EXPECT_THAT(comparison.left_out_a[5], HasSubstr("run 11 has no rows/s: not in this test"));
  EXPECT_EQ(comparison.left_out_a[5], comparison.left_out_b[5]);
  EXPECT_EQ(comparison.metrics[0].verdict, ChangeVerdict::kFaster);
}

TEST(Comparison, FirstPairsThatFoundAColdCacheAreLeftOut) {
  ComparisonInput input = Pairs(8, 1.5, 0.01);
  const auto read = static_cast<size_t>(Figure::kRead);
  for (ComparedSide* side : {&input.a, &input.b}) {
    for (ComparedSample& sample : side->samples) sample.figures.values[read] = 4096;
  }
  EXPECT_EQ(Compare(input).units, 8u);
  input.b.samples[0].figures.values[read] = 5e8;
  input.a.samples[1].figures.values[read] = 2e8;
  input.a.samples[3].figures.values[read] = 2e8;  // not in a row with the first ones
  const Comparison comparison = Compare(input);
  EXPECT_EQ(comparison.units, 6u);
  EXPECT_THAT(comparison.left_out_a[0], HasSubstr("read from the device"));
  EXPECT_THAT(comparison.left_out_b[1], HasSubstr("read from the device"));
  input.cold = true;  // then all do
  EXPECT_EQ(Compare(input).units, 8u);
  // A table that memory never holds is read from the device in every pair.
  input.cold = false;
  for (ComparedSide* side : {&input.a, &input.b}) {
    for (ComparedSample& sample : side->samples) sample.figures.values[read] = 3e8;
  }
  EXPECT_EQ(Compare(input).units, 8u);
}

TEST(Comparison, CommandsAreComparedByTheirTime) {
  ComparisonInput input = Pairs(12, 1, 0.001);
  for (ComparedSide* side : {&input.a, &input.b}) {
    for (ComparedSample& sample : side->samples) {
      sample.figures.values = {};
      sample.figures.values[static_cast<size_t>(Figure::kElapsed)] =
          side == &input.a ? 3.0 + 1e-3 * static_cast<double>(sample.run_id) : 2.0;
    }
  }
  for (const size_t planned : {size_t{0}, size_t{12}}) {
    input.planned_pairs = planned;
    const ComparedMetric elapsed = Compare(input).metrics.at(0);
    EXPECT_EQ(elapsed.figure, Figure::kElapsed);
    EXPECT_EQ(elapsed.word, "faster");  // less time
    EXPECT_EQ(elapsed.verdict, ChangeVerdict::kFaster);
    EXPECT_LT(elapsed.interval.high, 0);
    EXPECT_LT(*elapsed.change, 0);
  }
}

TEST(Comparison, NothingInCommonIsAnError) {
  ComparisonInput input = Pairs(4, 1, 0.01);
  for (ComparedSample& sample : input.b.samples) sample.figures.values = {};
  try {
    Compare(input);
    FAIL() << "no error";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::kInconclusive);
  }
}

TEST(Comparison, AnEffectOfTheOrderIsFoundAndIsOnNeitherSide) {
  ComparisonInput input = Pairs(16, 1.0, 0.002);
  for (size_t i = 0; i < 16; ++i) {
    ComparedSide& second = input.b_first[i] ? input.a : input.b;
    *second.samples[i].figures.values[0] *= 1.10;
  }
  const Comparison comparison = Compare(input);
  ASSERT_TRUE(comparison.order);
  EXPECT_NEAR(comparison.order->change, std::log(1.10), 0.003);
  EXPECT_LT(comparison.order->p, 0.001);
  EXPECT_NEAR(*comparison.metrics[0].change, 0, 0.003);
}

TEST(Comparison, TheSequentialTestDecidesTheFirstMetricAlone) {
  ComparisonInput input = Pairs(4, 1.8, 0.01);
  input.planned_pairs = 12;
  const SequentialPlan plan = PlanSequential(12, 0.05);
  EXPECT_TRUE(Replay(input, plan).step().stop);
  const Comparison early = Compare(input, &plan);
  EXPECT_TRUE(early.stopped_early);
  EXPECT_EQ(early.stopped_why, "difference");
  EXPECT_TRUE(early.metrics[0].sequential);
  EXPECT_FALSE(early.metrics[0].p_holm);
  EXPECT_EQ(early.metrics[0].verdict, ChangeVerdict::kFaster);
  ASSERT_TRUE(early.metrics[1].p_holm);
  EXPECT_GE(*early.metrics[1].p_holm, *early.metrics[1].p);
  // The same pairs, with their end known before: the interval is narrower, as it was looked at
  // once.
  input.planned_pairs = 0;
  const Comparison fixed = Compare(input);
  EXPECT_LT(fixed.metrics[0].interval.high - fixed.metrics[0].interval.low,
            early.metrics[0].interval.high - early.metrics[0].interval.low);
}

TEST(Comparison, SaysHowManyPairsAreMissing) {
  const Comparison comparison = Compare(Pairs(12, 1.0, 0.04, 3));
  const ComparedMetric& rate = comparison.metrics[0];
  ASSERT_EQ(rate.verdict, ChangeVerdict::kCannotTell);
  ASSERT_TRUE(rate.units_needed && rate.detectable && comparison.noise);
  EXPECT_GT(*rate.units_needed, 12u);
  EXPECT_LT(*rate.units_needed, 200u);
  EXPECT_GT(*rate.detectable, std::log(1.03));
  EXPECT_NEAR(*comparison.noise, 1.96 * 0.04 * std::sqrt(2), 0.04);
}

// ---------------------------------------------------------------- gates

TEST(Gate, IsReadAndJudgedByTheInterval) {
  const Comparison slower = Compare(Pairs(12, 0.9, 0.005));
  const Comparison same = Compare(Pairs(12, 1.0, 0.005));
  const Comparison noisy = Compare(Pairs(12, 1.0, 0.3));
  const struct {
    const char* gate;
    const Comparison* comparison;
    GateState state;
  } cases[] = {
      {"rows_per_s<-3%", &slower, GateState::kFails},
      {" rows_per_s < -3 % ", &slower, GateState::kFails},
      {"rows_per_s<-20%", &slower, GateState::kPasses},
      {"rows_per_s<-3%", &same, GateState::kPasses},
      {"rows_per_s<-3%", &noisy, GateState::kUndecided},
      {"rows_per_s>1%", &slower, GateState::kPasses},
      {"wait_ratio>2pt", &same, GateState::kPasses},
      {"wait_ratio<5pt", &same, GateState::kFails},
      {"elapsed_s>5%", &same, GateState::kUndecided},  // not compared
  };
  for (const auto& one : cases) {
    const GateResult result = Judge(ParseGate(one.gate, "--fail-on"), *one.comparison);
    EXPECT_EQ(result.state, one.state) << one.gate << ": " << result.why;
    EXPECT_FALSE(result.why.empty());
  }
  // Too few pairs for a verdict are too few for a gate.
  EXPECT_EQ(Judge(ParseGate("rows_per_s<-3%", "--fail-on"), Compare(Pairs(3, 0.5, 0.001))).state,
            GateState::kUndecided);
}

TEST(Gate, MistakesAreNamed) {
  const struct {
    const char* gate;
    const char* says;
  } cases[] = {
      {"", "has no < or >"},
      {"rows_per_s", "has no < or >"},
      {"rows_per_sec<-3%", "Did you mean 'rows_per_s'?"},
      {"rows_per_s<3", "in percent"},
      {"rows_per_s<3pt", "in percent"},
      {"wait_ratio>3%", "in points"},
      {"rows_per_s<%", "is not a number"},
      {"rows_per_s<nan%", "is not a number"},
      {"rows_per_s<-3x%", "is not a number"},
      {"rows_per_s<-100%", "nothing falls by 100 %"},
      {"<-3%", "unknown figure ''"},
  };
  for (const auto& one : cases) {
    try {
      ParseGate(one.gate, "--fail-on");
      FAIL() << one.gate;
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ExitCode::kUsage);
      EXPECT_EQ(error.where(), "--fail-on");
      EXPECT_THAT(error.what(), HasSubstr(one.says));
    }
  }
}

TEST(ChangeText, IsShortAndSigned) {
  EXPECT_EQ(ChangeText(Figure::kRowsPerSecond, std::log(1.802)), "+80.2 %");
  EXPECT_EQ(ChangeText(Figure::kRowsPerSecond, std::log(0.996)), "-0.40 %");
  EXPECT_EQ(ChangeText(Figure::kRowsPerSecond, std::log(60)), "x60.0");
  EXPECT_EQ(ChangeText(Figure::kDevicePerRow, std::log(2e10)), ">x1000");
  EXPECT_EQ(ChangeText(Figure::kWait, -0.434), "-43.4 pt");
  EXPECT_EQ(ChangeText(Figure::kWait, -1e-9), "0.0 pt");
}

// Blocks of two parts of a run whose rate varies by 10 % around the same mean, with noise that
// forgets in `lasts_s`: sums over intervals of 200 ms, as they are recorded.
ComparisonInput PartsOfOneRun(double part_s, double block_s, double lasts_s, Random* random) {
  constexpr double kInterval = 0.2;
  const double kept = lasts_s > 0 ? std::exp(-kInterval / lasts_s) : 0;
  const auto intervals = static_cast<int>(std::lround(block_s / kInterval));
  double noise = random->Normal();
  ComparisonInput input;
  input.unit = ComparedUnit::kBlock;
  for (ComparedSide* side : {&input.a, &input.b}) {
    for (int block = 0; block < static_cast<int>(part_s / block_s); ++block) {
      double rows_per_s = 0;
      for (int i = 0; i < intervals; ++i) {
        noise = kept * noise + std::sqrt(1 - kept * kept) * random->Normal();
        rows_per_s += 1000 * (1 + 0.1 * noise) / intervals;
      }
      RunFigures figures;
      figures.values[static_cast<size_t>(Figure::kRowsPerSecond)] = rows_per_s;
      figures.steady_windows = 1;
      side->samples.push_back({1, figures, ""});
    }
  }
  return input;
}

TEST(Comparison, EqualPartsOfOneRunSeldomDiffer) {
  constexpr double kPartsS[] = {8, 12, 20, 40};
  const char* asked =
      std::getenv("HEADRACE_COMPARED_PARTS");  // 250: the table of docs/statistics.md
  const int runs = asked != nullptr ? std::atoi(asked) : 40;
  Random random(20261126);
  fmt::print("equal parts of one run called different; {} each\n", runs);
  for (const double lasts_s : {0.0, 1.0, 2.0, 5.0}) {
    fmt::print("noise lasts {:.0f} s:", lasts_s);
    for (const double part_s : kPartsS) {
      int alarms = 0;
      for (int run = 0; run < runs; ++run) {
        ComparisonInput input = PartsOfOneRun(part_s, std::min(5.0, part_s / 4), lasts_s, &random);
        input.seed = random.Next();
        const ComparedMetric metric = Compare(input).metrics[0];
        alarms += metric.p_holm.value_or(1) < 0.05 &&
                  (metric.interval.low > 0 || metric.interval.high < 0);
      }
      fmt::print(" {:.1f} %", 100.0 * alarms / runs);
      if (lasts_s <= 2 && part_s >= 20) {
        EXPECT_LT(alarms, 0.1 * runs) << lasts_s << " s, " << part_s << " s";
      }
    }
    fmt::print("\n");
  }
}

}  // namespace
}  // namespace headrace::analysis
