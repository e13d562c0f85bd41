// A reduced set of the gates of docs/accuracy.md, on simulated data that is the same everywhere.
// The lines here stand apart from the page's figures by what so few pipelines may differ by chance.
#include "tests/validation/gates.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdio>

#include "base/error.h"
#include "tests/validation/gate_values.h"

namespace headrace::validation {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

TEST(Gates, PredictedRatesComeTrue) {
  Trials trials;
  for (uint64_t seed = 40000; seed < 40040; ++seed) {
    for (const PredictTrial& trial : TryPredictions(seed)) trials.predictions.push_back(trial);
  }
  const std::vector<Gate> gates = Judge(trials);
  Print(gates);
  EXPECT_LE(ValueOf(gates, "predicted rate, median error"), 0.04);
  EXPECT_LE(ValueOf(gates, "predicted rate, 90th percentile"), 0.15);
  EXPECT_GE(ValueOf(gates, "predicted rate, 90 % intervals that cover, at least"), 0.82);
}

TEST(Gates, BottlenecksAreNamed) {
  Trials trials;
  for (uint64_t seed = 41000; seed < 41024; ++seed) trials.names.push_back(TryNaming(seed));
  const std::vector<Gate> gates = Judge(trials);
  Print(gates);
  EXPECT_GE(ValueOf(gates, "bottleneck named first"), 0.85);
  EXPECT_GE(ValueOf(gates, "named first or second"), 0.9);
}

TEST(Gates, WorthsAreRankedAsTheyAre) {
  Trials trials;
  for (uint64_t seed = 44000; seed < 44024; ++seed) trials.worths.push_back(TryWorths(seed));
  const std::vector<Gate> gates = Judge(trials);
  Print(gates);
  EXPECT_GE(ValueOf(gates, "order of the three best limits to remove, Kendall's tau, mean"), 0.7);
  EXPECT_LE(ValueOf(gates, "said to gain none, gains 2 % or more"), 0.1);
}

TEST(Gates, CachesAreKeptWhereTheyPay) {
  Trials trials;
  for (uint64_t seed = 45000; seed < 45012; ++seed) {
    for (const CacheTrial& trial : TryCaching(seed)) trials.caches.push_back(trial);
  }
  const std::vector<Gate> gates = Judge(trials);
  Print(gates);
  EXPECT_GE(ValueOf(gates, "cache kept or not, and where, 3 epochs"), 0.8);
  EXPECT_GE(ValueOf(gates, "cache kept or not, and where, 30 epochs"), 0.8);
  EXPECT_LE(ValueOf(gates, "size of what is kept an epoch, 95th percentile of the error"), 0.06);
}

TEST(Gates, ChosenSettingsAreNearTheBestAndFitTheMemory) {
  Trials trials;
  for (uint64_t seed = 42000; seed < 42024; ++seed) {
    for (const ChooseTrial& trial : TryChoosing(seed)) trials.choices.push_back(trial);
  }
  const std::vector<Gate> gates = Judge(trials);
  Print(gates);
  EXPECT_GE(ValueOf(gates, "chosen settings within 5 % of the best"), 0.75);
  EXPECT_EQ(ValueOf(gates, "over memory"), 0);
  const Gate& regret = gates.back();
  EXPECT_LE(regret.value, 0.6 * regret.limit) << regret.what;
}

// One of the pipelines of docs/accuracy.md: the first stage's queue gains nothing and may not take
// the memory that the second one's needs.
TEST(Gates, MemoryGoesToTheQueueThatLimits) {
  for (const ChooseTrial& trial : TryChoosing(627941287)) {
    if (trial.strategy != "headrace plan") continue;
    ASSERT_GT(trial.best, 1.5 * trial.before);
    EXPECT_GT(trial.rate, 0.95 * trial.best) << trial.chosen << ", best " << trial.best_known;
    EXPECT_FALSE(trial.over_memory);
    return;
  }
  ADD_FAILURE() << "the plan was not tried";
}

TEST(Gates, ChangesAreGivenToWhatWasChanged) {
  Trials trials;
  for (uint64_t seed = 46000; seed < 46024; ++seed) {
    for (const AttributeTrial& trial : TryAttributing(seed)) trials.attributions.push_back(trial);
  }
  const std::vector<Gate> gates = Judge(trials);
  Print(gates);
  EXPECT_LE(ValueOf(gates, "attribution, sum of all parts against the change, worst"), 1e-9);
  EXPECT_GE(ValueOf(gates,
                    "attribution, changed alone, moved the rate by 5 %: >= 90 % of it given to "
                    "it, in"),
            0.7);
  EXPECT_LE(ValueOf(gates, "attribution, two or three changed at once: error of each part, median"),
            0.03);
}

TEST(Gates, WhatWasNotTriedIsNotHeld) {
  const Gate untried{"G1", "x", "<= 5 %", 0, 0.05, false, "0.0 %", 0};
  EXPECT_FALSE(untried.holds());
  Trials trials;
  EXPECT_TRUE(Judge(trials).empty());
  const size_t all = MissingFamilies(trials).size();
  EXPECT_GE(all, 10u);
  trials.solutions.push_back({"threads", 1, 1, 1});
  EXPECT_EQ(MissingFamilies(trials).size(), all - 1);
  trials.names.push_back({1, "cpu", "limited", "s0", "s1", 3, 0.9, "s0", 0.01, true, false});
  EXPECT_EQ(MissingFamilies(trials).size(), all - 1) << "no clear bottleneck among them";
}

TEST(Gates, SolversFindTheOptimum) {
  for (const SolveTrial& trial : TrySolving(43000)) {
    EXPECT_EQ(trial.equal, trial.instances) << trial.what;
  }
}

TEST(Gates, LinesAreReadAsTheyAreWritten) {
  Trials trials;
  const PredictTrial predict{7, "lock", "s1 1to2 ", 2, 10, 20, 15, 25, 19, "stage"};
  const NameTrial name{8, "cpu", "limited", "s0", "cores", 3, 0.75, "s0", 0.25, true, false};
  const ChooseTrial choose{9, "cores", "all cores", 50, 0, 80, true, 3, "2,1/4,4", "3,1/4,16"};
  const WorthTrial worth{10, "device", 3, 1.0 / 3, 4, 1, 0.25, 0.5, 0.125, 0.75, true};
  for (const std::string& line : {Line(predict), Line(name), Line(choose), Line(worth)}) {
    EXPECT_TRUE(Parse(line, &trials)) << line;
  }
  // Those of real pipelines are held apart.
  EXPECT_TRUE(Parse("real-" + Line(predict), &trials));
  EXPECT_TRUE(Parse("real-" + Line(name), &trials));
  EXPECT_FALSE(Parse("real-" + Line(choose), &trials));
  EXPECT_TRUE(Parse("real-left\tbusy", &trials));
  EXPECT_TRUE(Parse("real-left\tfull", &trials));
  EXPECT_EQ(trials.real_busy, 1);
  EXPECT_EQ(trials.real_full, 1);
  ASSERT_EQ(trials.real_predictions.size() + trials.real_names.size(), 2u);
  EXPECT_EQ(Line(trials.real_names[0]), Line(name));
  EXPECT_THAT(RenderReal(trials, "today"), Not(HasSubstr("Beside a neighbour")));
  EXPECT_TRUE(Parse("beside-" + Line(predict), &trials));
  EXPECT_TRUE(Parse("beside-" + Line(name), &trials));
  EXPECT_FALSE(Parse("beside-" + Line(choose), &trials));
  EXPECT_THAT(RenderReal(trials, "today"), HasSubstr(" Made today. "));
  EXPECT_THAT(
      RenderReal(trials, ""),
      AllOf(HasSubstr("| with nothing else on it | 1 | 5.3 % |"),
            HasSubstr("| beside a neighbour that computes | 1 | 5.3 % | 5.3 % | 100.0 % | 1 "
                      "| 100.0 % | 0.0 % | 0 of 0 |")));
  EXPECT_TRUE(Parse("control\tslow consumer\tno change\t1\t0 changes", &trials));
  ASSERT_EQ(trials.controls.size(), 1u);
  EXPECT_TRUE(trials.controls[0].held);
  EXPECT_TRUE(Parse("applied\tundeclared limits\t8 MB/s\t1\tthe store\tread less\t\t", &trials));
  EXPECT_TRUE(Parse("applied\tundeclared limits\tquota\t0\tcores\t+8 %\t-4 %\tSLOWER", &trials));
  ASSERT_EQ(trials.applied.size(), 2u);
  EXPECT_THAT(
      RenderReal(trials, ""),
      AllOf(HasSubstr("## Undeclared limits\n"),
            HasSubstr("| 8 MB/s | the store | read less |  |  |\n"),
            HasSubstr("| quota | **not:** cores | +8 % | -4 % | SLOWER |\n"),
            HasSubstr("undeclared limits: limit named | >= 90.0 % | 50.0 % | 2 | **missed** |"),
            HasSubstr("or slower by 3 % | <= 0.0 % | 100.0 % | 1 | **missed** |")));
  const AttributeTrial attribute{12, "cpu", "s1a x0.50", 2, 0.25, 0.5, 0.125, 0, 0.25, 0, -1, 0.5};
  EXPECT_TRUE(Parse(Line(attribute), &trials));
  EXPECT_TRUE(Parse("real-" + Line(attribute), &trials));
  ASSERT_EQ(trials.attributions.size() + trials.real_attributions.size(), 2u);
  EXPECT_EQ(Line(trials.attributions[0]), Line(attribute));
  EXPECT_EQ(Line(trials.real_attributions[0]), Line(attribute));
  const CacheTrial cache{11, "cpu", 3, "s1 disk", "none", 30, 31, 30, -0.0125};
  EXPECT_TRUE(Parse(Line(cache), &trials));
  ASSERT_EQ(trials.caches.size(), 1u);
  EXPECT_EQ(Line(trials.caches[0]), Line(cache));
  ASSERT_EQ(trials.worths.size(), 1u);
  EXPECT_EQ(Line(trials.worths[0]), Line(worth));
  ASSERT_EQ(trials.predictions.size() + trials.names.size() + trials.choices.size(), 3u);
  EXPECT_EQ(Line(trials.predictions[0]), Line(predict));
  EXPECT_EQ(Line(trials.names[0]), Line(name));
  EXPECT_EQ(Line(trials.choices[0]), Line(choose));
  EXPECT_FALSE(Parse("name\t1", &trials));
}

TEST(Gates, SharesAndTheirIntervals) {
  EXPECT_NEAR(WilsonLow(188, 200), 0.898, 0.001);
  EXPECT_NEAR(WilsonLow(28, 30), 0.79, 0.005);
  EXPECT_DOUBLE_EQ(QuantileOf({4, 1, 3, 2}, 0.5), 2.5);
}

}  // namespace
}  // namespace headrace::validation
