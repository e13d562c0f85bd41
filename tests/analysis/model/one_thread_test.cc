// A loader without workers: one thread loads and computes in turn, and every page says so.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "analysis/advice/emit/emit.h"
#include "analysis/advice/next_step.h"
#include "analysis/advice/recommendations.h"
#include "analysis/model/bottleneck.h"
#include "tests/analysis/made_runs.h"

namespace headrace::analysis {
namespace {

using testing::HasSubstr;

const Recommendation* Find(const std::vector<Recommendation>& all, const std::string& id) {
  for (const Recommendation& one : all) {
    if (one.id == id) return &one;
  }
  return nullptr;
}

TEST(OneThread, ItsCpuIsCountedOnce) {
  for (const int level : {2, 3}) {
    SCOPED_TRACE(level);
    OneThread costs;
    costs.level = level;
    const RunView run = RecordOneThread(costs, 10, 1);
    const PipelineModel model(run);
    EXPECT_LE(model.cores_used().value(), 1.02) << "one thread cannot use more than one core";
    EXPECT_NEAR(model.cores_used().value(), 1, 0.03);
    EXPECT_NEAR(model.demands().cpu_s, 0.0055, 0.0002);
    EXPECT_NEAR(model.demands().consumer_cpu_s, 0.002, 0.0001);
  }
}

TEST(OneThread, LoadsAndComputesInTurn) {
  for (const int level : {2, 3}) {
    SCOPED_TRACE(level);
    OneThread costs;
    costs.level = level;
    const RunView run = RecordOneThread(costs, 10, 1);
    const PipelineModel model(run);
    ASSERT_TRUE(model.loads_on_consumer());
    const Bottleneck bottleneck = FindBottleneck(model);
    EXPECT_EQ(bottleneck.verdict, Verdict::kLimited);
    EXPECT_EQ(bottleneck.findings[0].limit.kind_name(), kThreadLimit);
    EXPECT_NEAR(bottleneck.findings[0].limit.bound, 1 / 0.0055, 4);
    EXPECT_NEAR(bottleneck.findings[0].utilisation, 1, 0.02);
    EXPECT_TRUE(bottleneck.disagreement.empty()) << bottleneck.disagreement;
    ASSERT_TRUE(bottleneck.findings[0].culprit.has_value());
    EXPECT_EQ(model.operators()[*bottleneck.findings[0].culprit].name, "decompress");
  }
}

// Others fill the core that the one thread leaves; it lacks nothing.
TEST(OneThread, OthersOnTheCoreThatItLeavesAreNotItsLimit) {
  for (const bool little : {false, true}) {
    SCOPED_TRACE(little);
    OneThread costs;
    if (little) costs.load_cpu_s = 0.03 * costs.step_cpu_s;
    RunView run = RecordOneThread(costs, 10, 1);
    run.hosts = {{"host_cores", "cores", "counter", 2, 2, 2, 2},
                 {"host_busy_cores", "cores", "counter", 2, 2, 2, 2},
                 {"host_peer_cpu_ns", "ns", "counter", {}, {}, {}, 1e10}};
    const PipelineModel model(run);
    ASSERT_TRUE(model.others_hold_cores());
    const Bottleneck bottleneck = FindBottleneck(model);
    EXPECT_EQ(bottleneck.verdict, little ? Verdict::kConsumer : Verdict::kLimited);
    EXPECT_EQ(bottleneck.findings[0].limit.kind_name(), little ? kConsumerLimit : kThreadLimit);
    EXPECT_FALSE(bottleneck.alone);
  }
}

// Where loading takes next to nothing of the one thread, its step is the limit.
TEST(OneThread, LittleLoadingIsNotTheLimit) {
  OneThread costs;
  for (const bool little : {true, false}) {
    costs.load_cpu_s = (little ? 0.03 : 0.1) * costs.step_cpu_s;
    const RunView run = RecordOneThread(costs, 10, 1);
    const Bottleneck bottleneck = FindBottleneck(PipelineModel(run));
    EXPECT_EQ(bottleneck.findings[0].limit.kind_name(), little ? kConsumerLimit : kThreadLimit);
    EXPECT_EQ(bottleneck.verdict == Verdict::kConsumer, little);
  }
}

// Batches that take so long that handing them over is little.
OneThread LargeBatches() {
  OneThread costs;
  costs.load_cpu_s = 0.07;
  costs.step_cpu_s = 0.04;
  return costs;
}

TEST(OneThread, EveryPageGivesTheSameWorkers) {
  const RunView run = RecordOneThread(LargeBatches(), 40, 1);
  const Statements statements = MakeStatements(run);
  ASSERT_TRUE(statements.allocation.has_value());
  const int workers = statements.allocation->settings.parallelism[0];
  EXPECT_GE(workers, 1);
  EXPECT_GT(statements.allocation->predicted, 1.3 * statements.allocation->now);
  const NextStep next = NextStepOf(run, statements);
  EXPECT_EQ(next.kind, NextKind::kChange);
  EXPECT_THAT(next.text, HasSubstr("num_workers 0 -> " + std::to_string(workers)));
  const Emitted emitted = EmitDataLoader(run, {});
  ASSERT_FALSE(emitted.settings.empty());
  EXPECT_EQ(emitted.settings[0].name, "num_workers");
  EXPECT_EQ(emitted.settings[0].value, std::to_string(workers));
  EXPECT_DOUBLE_EQ(emitted.predicted.value(), statements.allocation->predicted);
  const std::vector<Recommendation> all = Recommend(run, statements);
  ASSERT_NE(Find(all, "R2"), nullptr);
  EXPECT_EQ(Find(all, "R2")->advice, Advice::kFires);
  EXPECT_THAT(Find(all, "R2")->act, HasSubstr("workers 0 -> " + std::to_string(workers)));
  EXPECT_NE(Find(all, "R1")->advice, Advice::kFires) << "no other machine can feed this program";
}

// The truth: a stage of its own beside the consumer.
TEST(OneThread, WhatAWorkerGainsIsWithinItsInterval) {
  const RunView run = RecordOneThread(LargeBatches(), 40, 1);
  const PipelineModel model(run);
  SimulatedPipeline apart;
  apart.cores = 2;
  apart.stages = {{"loader", 1, 4, {{"decompress", 0.07, 0, 0, 0, 0.1, -1}}}};
  apart.consumer_cpu_s = 0.04;
  Settings one = model.current();
  one.parallelism[0] = 1;
  const Prediction prediction = Predictor(model).Predict({one, {}});
  const double truth = SimulatedRate(apart, 20000, 3).value();
  EXPECT_LE(prediction.interval.low, truth);
  EXPECT_GE(prediction.interval.high, truth);
  EXPECT_NEAR(prediction.rate / truth, 1, 0.15);  // handing over costs nothing there
  EXPECT_LT(prediction.interval.low, 0.85 * prediction.rate)
      << "what it costs to hand batches over is not known";
}

// Half a millisecond of loading: handing a batch over may cost more than a worker takes off.
TEST(OneThread, WorkersOfTinyBatchesMayBeSlower) {
  OneThread costs;
  costs.load_cpu_s = 0.0005;
  costs.step_cpu_s = 0.0004;
  const RunView run = RecordOneThread(costs, 10, 1);
  const PipelineModel model(run);
  Settings two = model.current();
  two.parallelism[0] = 2;
  const Prediction prediction = Predictor(model).Predict({two, {}});
  EXPECT_LT(prediction.interval.low, 0.5 * model.demands().rate);
  EXPECT_TRUE(MakeStatements(run).allocation->changes.empty()) << "nothing is promised";
}

TEST(OneThread, WorkersGainNothingOnOneCore) {
  OneThread costs;
  costs.cores = 1;
  const RunView run = RecordOneThread(costs, 10, 1);
  const Statements statements = MakeStatements(run);
  EXPECT_EQ(statements.bottleneck->findings[0].limit.kind_name(), kCoresLimit);
  EXPECT_TRUE(statements.allocation->changes.empty());
  EXPECT_EQ(EmitDataLoader(run, {}).settings[0].value, "0");
}

// What no operator accounts for but the thread computes is loading, too.
TEST(OneThread, WorkOutsideOperatorsMovesWithTheLoader) {
  OneThread costs;
  costs.load_cpu_s = 0.0015;
  costs.outside_s = 0.002;
  const RunView run = RecordOneThread(costs, 10, 1);
  const PipelineModel model(run);
  EXPECT_NEAR(model.demands().stage_s[0], 0.0035, 0.0002);
  EXPECT_NEAR(model.demands().cpu_s, 0.0055, 0.0002);
  EXPECT_NEAR(model.demands().consumer_cpu_s, 0.002, 0.0002);
  const Bottleneck bottleneck = FindBottleneck(model);
  EXPECT_EQ(bottleneck.findings[0].limit.kind_name(), kThreadLimit);
  EXPECT_EQ(bottleneck.verdict, Verdict::kLimited);
}

// A request that waits in no operator may wait for threads that nobody accounts for.
TEST(OneThread, WaitsOutsideOperatorsAreNotDecided) {
  OneThread costs;
  costs.load_cpu_s = 0.0005;
  costs.outside_s = 0.004;
  RunView run = RecordOneThread(costs, 10, 1);
  for (StageRow& stage : run.stages) {
    if (stage.name == "trainer") {
      *stage.on_cpu_ns = *run.operators[0].on_cpu_ns + *run.operators[1].on_cpu_ns;
    }
  }
  for (WindowRow& window : run.windows) {
    window.stages[1].on_cpu_ns = *window.operators[0].on_cpu_ns + *window.operators[1].on_cpu_ns;
  }
  const Bottleneck bottleneck = FindBottleneck(PipelineModel(run));
  EXPECT_EQ(bottleneck.verdict, Verdict::kUndecided);
  EXPECT_THAT(bottleneck.measure, HasSubstr("operators"));
}

}  // namespace
}  // namespace headrace::analysis
