// What carries the difference between two recorded runs: parts sum to it, the part that was changed
// gets it, and a pair without a change has none to divide.
#include "analysis/comparison/attribution.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "analysis/statistics/shapley.h"
#include "tests/analysis/outside_run.h"
#include "tests/analysis/synthetic_run.h"

namespace headrace::analysis {
namespace {

SimulatedPipeline Base() {
  SimulatedPipeline pipeline;
  pipeline.cores = 4;
  pipeline.consumer_s = 0.001;
  pipeline.resources = {{"table", 1}};
  pipeline.stages.push_back({"load", 1, 4, {{"fetch", 0.0001, 0.003, 0, 0, 0.1, -1}}});
  pipeline.stages.push_back(
      {"work", 1, 4, {{"unpack", 0.002, 0, 0, 0, 0.1, -1}, {"decode", 0.006, 0, 0, 0, 0.1, -1}}});
  pipeline.stages.push_back({"join", 1, 4, {{"look", 0.0001, 0.001, 0, 0.001, 0.1, 0}}});
  return pipeline;
}

double SumOf(const Attribution& attribution) {
  double sum = 0;
  for (const AttributionRow& row : attribution.rows) sum += row.throughput.value;
  return sum;
}

const AttributionRow* Find(const Attribution& attribution, const std::string& name,
                           AttributedTo to) {
  for (const AttributionRow& row : attribution.rows) {
    if (row.name == name && row.to == to) return &row;
  }
  return nullptr;
}

std::vector<RunView> Runs(const SimulatedPipeline& pipeline, size_t count, uint64_t seed) {
  std::vector<RunView> runs;
  for (size_t i = 0; i < count; ++i) runs.push_back(Record(pipeline, 20, seed + i));
  return runs;
}

TEST(Attribution, TheCheaperOperatorThatLimitsCarriesTheChange) {
  SimulatedPipeline b = Base();
  b.stages[1].operators[1].cpu_s *= 0.7;
  b.stages[0].operators[0].blocked_s *= 1.1;  // does not limit
  const Attribution found = Attribute(Runs(Base(), 2, 1), Runs(b, 2, 11));
  ASSERT_EQ(found.unavailable, "");
  EXPECT_GT(found.log_ratio.value, 0.2);
  EXPECT_NEAR(SumOf(found), found.log_ratio.value, 1e-12);
  const AttributionRow* decode = Find(found, "decode", AttributedTo::kOperator);
  ASSERT_NE(decode, nullptr);
  EXPECT_NEAR(decode->throughput.value / found.log_ratio.value, 1, 0.1);
  EXPECT_TRUE(decode->told);
  const double cpu = std::log(found.total_b.cpu_s / found.total_a.cpu_s);
  EXPECT_NEAR(*decode->cpu_share / cpu, 1, 0.1);
  const AttributionRow* fetch = Find(found, "fetch", AttributedTo::kOperator);
  EXPECT_FALSE(fetch->within_noise);
  EXPECT_EQ(fetch->throughput.value, 0);
  EXPECT_LT(fetch->throughput.interval.low, -0.005) << "it may do a little that was not seen";
  EXPECT_GT(fetch->throughput.interval.high, 0.005);
  EXPECT_FALSE(fetch->told);
  EXPECT_GT(*fetch->blocked_share, 0);
}

TEST(Attribution, EachKindOfChangeGoesToItsRow) {
  struct Case {
    const char* what;
    void (*change)(SimulatedPipeline*);
    AttributedTo to;
    const char* name;
  };
  const Case cases[] = {
      {"threads", [](SimulatedPipeline* p) { p->stages[1].parallelism = 2; },
       AttributedTo::kThreads, "work"},
      {"consumer", [](SimulatedPipeline* p) { p->consumer_s = 0.012; }, AttributedTo::kConsumer,
       "consumer"},
      {"lock hold", [](SimulatedPipeline* p) { p->stages[2].operators[0].held_blocked_s = 0.012; },
       AttributedTo::kOperator, "look"},
      {"sleep", [](SimulatedPipeline* p) { p->stages[0].operators[0].blocked_s = 0.012; },
       AttributedTo::kOperator, "fetch"},
      {"cores", [](SimulatedPipeline* p) { p->cores = 0.7; }, AttributedTo::kCores,
       "cores left by others"},
  };
  for (const Case& one : cases) {
    SimulatedPipeline b = Base();
    one.change(&b);
    const Attribution found = Attribute(Runs(Base(), 1, 3), Runs(b, 1, 31));
    ASSERT_EQ(found.unavailable, "") << one.what;
    ASSERT_GT(std::abs(found.log_ratio.value), 0.1) << one.what;
    const AttributionRow* row = Find(found, one.name, one.to);
    ASSERT_NE(row, nullptr) << one.what;
    EXPECT_NEAR(row->throughput.value / found.log_ratio.value, 1, 0.1) << one.what;
    EXPECT_EQ(&found.rows[0], row) << one.what;
  }
}

TEST(Attribution, PartsSumToTheChangeWhateverChanges) {
  for (uint64_t seed = 1; seed <= 12; ++seed) {
    SCOPED_TRACE(seed);
    Random random(seed);
    SimulatedPipeline b = Base();
    for (SimulatedStage& stage : b.stages) {
      if (random.Uniform() < 0.3) stage.parallelism += 1;
      if (random.Uniform() < 0.3) stage.queue_capacity = 16;
      for (SimulatedOperator& op : stage.operators) {
        if (random.Uniform() < 0.5) op.cpu_s *= std::exp(random.Normal() / 2);
        if (random.Uniform() < 0.5) op.blocked_s *= std::exp(random.Normal() / 2);
      }
    }
    if (random.Uniform() < 0.5) b.consumer_s *= 5;
    const Attribution found = Attribute(Runs(Base(), 2, seed), Runs(b, 1, seed + 100));
    ASSERT_EQ(found.unavailable, "");
    EXPECT_NEAR(SumOf(found), found.log_ratio.value, 1e-9);
    EXPECT_NEAR(found.log_ratio.value, std::log(found.rate_b / found.rate_a), 1e-9);
    CostFigures a, sum_b;
    double cpu = 0, blocked = 0, bytes = 0;
    for (const AttributionRow& row : found.rows) {
      if (row.a) a.cpu_s += row.a->cpu_s;
      if (row.b) sum_b.cpu_s += row.b->cpu_s;
      cpu += row.cpu_share.value_or(0);
      blocked += row.blocked_share.value_or(0);
      bytes += row.bytes_share.value_or(0);
      EXPECT_LE(row.throughput.interval.low, row.throughput.value + 1e-9) << row.name;
      EXPECT_GE(row.throughput.interval.high, row.throughput.value - 1e-9) << row.name;
    }
    EXPECT_NEAR(a.cpu_s, found.total_a.cpu_s, 1e-12);
    EXPECT_NEAR(sum_b.cpu_s, found.total_b.cpu_s, 1e-12);
    EXPECT_NEAR(cpu, std::log(found.total_b.cpu_s / found.total_a.cpu_s), 1e-9);
    EXPECT_NEAR(blocked, std::log(found.total_b.blocked_s / found.total_a.blocked_s), 1e-9);
    EXPECT_NEAR(bytes, std::log(found.total_b.bytes / found.total_a.bytes), 1e-9);
  }
}

TEST(Attribution, SwappedSidesNegateEveryPart) {
  SimulatedPipeline other = Base();
  other.stages[1].operators[1].cpu_s *= 0.5;
  other.stages[0].operators[0].blocked_s *= 2;
  other.stages[2].parallelism = 2;
  const std::vector<RunView> a = Runs(Base(), 2, 5), b = Runs(other, 2, 55);
  const Attribution there = Attribute(a, b), back = Attribute(b, a);
  for (const AttributionRow& row : there.rows) {
    const AttributionRow* same = Find(back, row.name, row.to);
    ASSERT_NE(same, nullptr) << row.name;
    EXPECT_NEAR(row.throughput.value, -same->throughput.value, 1e-9) << row.name;
    EXPECT_NEAR(row.cpu_share.value_or(0), -same->cpu_share.value_or(0), 1e-9) << row.name;
  }
}

TEST(Attribution, WithoutAChangeThereIsNothingToDivide) {
  for (uint64_t seed = 1; seed <= 10; ++seed) {
    SCOPED_TRACE(seed);
    const Attribution found = Attribute(Runs(Base(), 2, seed), Runs(Base(), 2, seed + 50));
    for (const AttributionRow& row : found.rows) {
      EXPECT_NEAR(row.throughput.value, 0, 0.01) << row.name;
      // One pair in twenty differs by more than its interval; that is explained by nothing.
      EXPECT_TRUE(!row.told || row.to == AttributedTo::kUnexplained) << row.name;
    }
  }
}

TEST(Attribution, WhatAllOperatorsHaveInCommonIsTheCores) {
  SimulatedPipeline a = Base();
  a.stages[0].operators[0].cpu_s = a.stages[2].operators[0].cpu_s = 0.001;
  SimulatedPipeline b = a;
  for (SimulatedStage& stage : b.stages) {
    for (SimulatedOperator& op : stage.operators) op.cpu_s *= 1.12;
  }
  const Attribution found = Attribute(Runs(a, 2, 6), Runs(b, 2, 66));
  EXPECT_LT(found.log_ratio.value, -0.09);
  EXPECT_EQ(found.rows[0].to, AttributedTo::kCoreSpeed);
  EXPECT_NEAR(found.rows[0].throughput.value / found.log_ratio.value, 1, 0.1);
  EXPECT_NEAR(*found.rows[0].setting_b, 1 / 1.12, 0.01);
  // What they cost is what was measured.
  const AttributionRow* decode = Find(found, "decode", AttributedTo::kOperator);
  EXPECT_NEAR(decode->b->cpu_s / decode->a->cpu_s, 1.12, 0.01);
}

TEST(Attribution, OperatorsOfOneSideAreSaidToBe) {
  SimulatedPipeline b = Base();
  b.stages[1].operators.push_back({"hash", 0.004, 0, 0, 0, 0.1, -1});
  const std::vector<RunView> without = Runs(Base(), 2, 7), with = Runs(b, 2, 77);
  const Attribution added = Attribute(without, with), removed = Attribute(with, without);
  for (const Attribution* found : {&added, &removed}) {
    const AttributionRow* hash = Find(*found, "hash", AttributedTo::kOperator);
    ASSERT_NE(hash, nullptr);
    EXPECT_EQ(hash->a.has_value(), found == &removed);
    EXPECT_EQ(hash->b.has_value(), found == &added);
    EXPECT_NEAR(hash->throughput.value / found->log_ratio.value, 1, 0.1);
    ASSERT_FALSE(found->notes.empty());
    EXPECT_THAT(found->notes[0], testing::HasSubstr("operator hash"));
  }
}

TEST(Attribution, FusedStagesAreAShapeOfTheirOwn) {
  SimulatedPipeline split = Base();
  split.stages[1].operators.pop_back();
  split.stages.insert(split.stages.begin() + 2,
                      SimulatedStage{"late", 1, 4, {{"decode", 0.006, 0, 0, 0, 0.1, -1}}});
  const Attribution found = Attribute(Runs(Base(), 2, 8), Runs(split, 2, 88));
  ASSERT_EQ(found.unavailable, "");
  EXPECT_GT(found.log_ratio.value, 0.1);
  EXPECT_EQ(found.rows[0].to, AttributedTo::kShape);
  EXPECT_NEAR(found.rows[0].throughput.value / found.log_ratio.value, 1, 0.1);
  EXPECT_NEAR(SumOf(found), found.log_ratio.value, 1e-9);
}

TEST(Attribution, AnotherRateHasItsDifferenceAsARow) {
  AttributionOptions options;
  options.log_ratio = 0.5;
  const Attribution found = Attribute(Runs(Base(), 1, 1), Runs(Base(), 1, 2), options);
  EXPECT_NEAR(SumOf(found), 0.5, 1e-9);
  const AttributionRow* outside = Find(found, "start, fill and end", AttributedTo::kOutsidePhase);
  ASSERT_NE(outside, nullptr);
  EXPECT_NEAR(outside->throughput.value, 0.5, 0.05);
}

TEST(Attribution, ANegligibleDifferenceOfTheRateIsNoRow) {
  const auto a = Runs(Base(), 1, 1), b = Runs(Base(), 1, 2);
  AttributionOptions options;
  options.log_ratio = Attribute(a, b).log_ratio.value + 1e-4;
  options.outside = "how runs are averaged";
  const Attribution found = Attribute(a, b, options);
  EXPECT_EQ(Find(found, options.outside, AttributedTo::kOutsidePhase), nullptr);
  EXPECT_NEAR(SumOf(found), *options.log_ratio, 1e-12);
}

TEST(Attribution, SaysWhyThereIsNone) {
  EXPECT_NE(Attribute({}, {}).unavailable, "");
  RunView empty;
  EXPECT_NE(Attribute({&empty, 1}, {&empty, 1}).unavailable, "");
}

RunView SeenFromOutside(double seconds, double cpu_s, const char* name) {
  OutsideRun run(seconds);
  run.view.run.name = name;
  run.Process(1, 0, "train").Process(2, 1, "loader");
  run.OnCpu(1, "train (main)", cpu_s / seconds);
  run.Blocked(1, "train (main)", "pipe", 1 - cpu_s / seconds);
  run.OnCpu(2, "loader (main)", 0.9);
  run.Blocked(2, "loader (main)", "storage", 0.1);
  return run.view;
}

TEST(Attribution, CommandsAreDividedByTheMainThreadsTime) {
  const RunView a = SeenFromOutside(10, 6, "a"), b = SeenFromOutside(8, 4, "b");
  const Attribution found = Attribute({&a, 1}, {&b, 1});
  ASSERT_EQ(found.unavailable, "");
  EXPECT_EQ(found.unit, "run");
  EXPECT_NEAR(found.log_ratio.value, std::log(10.0 / 8), 1e-9);
  EXPECT_NEAR(SumOf(found), found.log_ratio.value, 1e-9);
  EXPECT_THAT(found.rows[0].name, testing::StartsWith("CPU time of train"));
  EXPECT_NEAR(found.rows[0].throughput.value / found.log_ratio.value, 1, 0.15);
  double cpu = 0;
  for (const AttributionRow& row : found.rows) cpu += row.cpu_share.value_or(0);
  EXPECT_NEAR(cpu, std::log(found.total_b.cpu_s / found.total_a.cpu_s), 1e-9);
}

TEST(Attribution, CommandsWithoutThreadTimesHaveNone) {
  RunView bare;
  bare.run.name = "bare";
  bare.run.duration_ns = 1'000'000'000;
  const Attribution found = Attribute({&bare, 1}, {&bare, 1});
  EXPECT_THAT(found.unavailable, testing::HasSubstr("threads"));
  const RunView other = Record(Base(), 5, 1);
  EXPECT_NE(Attribute({&bare, 1}, {&other, 1}).unavailable, "");
}

// What |set| makes, of three changes: 1 if the first and any other are made (the glove game).
TEST(Shapley, DividesTheGloveGameAsTheBooksDo) {
  const auto value = [](uint64_t set) { return (set & 1) != 0 && (set & 6) != 0 ? 1.0 : 0.0; };
  const ShapleyValues found = Shapley(3, value, 6, 0, 1);
  EXPECT_TRUE(found.exact);
  EXPECT_NEAR(found.values[0], 4.0 / 6, 1e-12);
  EXPECT_NEAR(found.values[1], 1.0 / 6, 1e-12);
  EXPECT_NEAR(found.values[2], 1.0 / 6, 1e-12);
}

TEST(Shapley, DrawnOrdersSumExactlyAndComeNearTheTruth) {
  for (uint64_t seed = 1; seed <= 10; ++seed) {
    SCOPED_TRACE(seed);
    Random random(seed);
    std::vector<double> costs;
    for (int i = 0; i < 8; ++i) costs.push_back(random.Normal());
    const auto value = [&](uint64_t set) {
      double sum = 0, most = 0;
      for (size_t i = 0; i < costs.size(); ++i) {
        if ((set >> i & 1) == 0) continue;
        sum += costs[i];
        most = std::max(most, costs[i]);
      }
      return sum + most;
    };
    const ShapleyValues exact = Shapley(8, value, 8, 0, seed);
    const ShapleyValues drawn = Shapley(8, value, 6, 200, seed);
    EXPECT_FALSE(drawn.exact);
    double sum = 0;
    for (size_t i = 0; i < 8; ++i) {
      sum += drawn.values[i];
      EXPECT_NEAR(drawn.values[i], exact.values[i], 0.1);
    }
    EXPECT_NEAR(sum, value(255) - value(0), 1e-9);
  }
}

TEST(Shapley, NoChangesHaveNoValues) {
  EXPECT_TRUE(Shapley(
                  0, [](uint64_t) { return 3.0; }, 6, 8, 1)
                  .values.empty());
}

}  // namespace
}  // namespace headrace::analysis
