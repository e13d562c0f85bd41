// Workers whose results pile up without a bound: what they do ahead is no demand of the batches
// that are taken, and takes cores all the same.
#include "analysis/model/running_ahead.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "analysis/model/bottleneck.h"
#include "tests/analysis/made_runs.h"

namespace headrace::analysis {
namespace {

using testing::HasSubstr;

constexpr int kNoBound = 1'000'000;

SimulatedPipeline PoolAndTrainer(double load_cpu_s, double load_blocked_s, int queue) {
  SimulatedPipeline pipeline;
  pipeline.cores = 2;
  pipeline.stages = {{"Pool", 2, queue, {{"load", load_cpu_s, load_blocked_s, 0, 0, 0.2, -1}}}};
  pipeline.consumer_s = 0.02;
  return pipeline;
}

RunView RecordPool(const SimulatedPipeline& pipeline) {
  RunView run = Record(pipeline, 20, 1);
  run.run.pipeline_path.clear();
  if (run.queues[0].capacity_count == kNoBound) run.queues[0].capacity_count = 0;
  return run;
}

TEST(RunningAhead, WhatIsNotTakenIsNoDemand) {
  const RunView run = RecordPool(PoolAndTrainer(0.0002, 0.005, kNoBound));
  const PipelineModel model(run);
  EXPECT_NEAR(1 / model.stages()[0].taken_ratio, 0.02 / 0.0026, 1.2);
  EXPECT_NEAR(model.demands().stage_s[0], 0.0052, 0.0006) << "one call for each batch";
  const Bottleneck bottleneck = FindBottleneck(model);
  EXPECT_EQ(bottleneck.findings[0].limit.kind_name(), kConsumerLimit);
  EXPECT_GT(bottleneck.findings[0].probability, 0.9);
  EXPECT_EQ(StageAhead(model), "Pool");
  EXPECT_THAT(AheadWords(model), HasSubstr("results for each one that is taken"));
  EXPECT_EQ(model.current().queue_capacity[0], 64) << "no queue to make longer";
}

TEST(RunningAhead, ItTakesCores) {
  const RunView run = RecordPool(PoolAndTrainer(0.005, 0, kNoBound));
  const PipelineModel model(run);
  EXPECT_NEAR(model.cores_ahead(), 2 * (1 - model.stages()[0].taken_ratio), 0.1);
  EXPECT_LT(model.cores_available(), 0.7);
  EXPECT_NEAR(model.demands().stage_cpu_s[0], 0.005, 0.001);
}

TEST(RunningAhead, WorkersThatAreTheLimitAreNotAhead) {
  const RunView run = RecordPool(PoolAndTrainer(0.0002, 0.08, kNoBound));
  const PipelineModel model(run);
  EXPECT_EQ(model.stages()[0].taken_ratio, 1);
  EXPECT_EQ(AheadWords(model), "");
  EXPECT_EQ(FindBottleneck(model).findings[0].limit.name, "Pool");
}

TEST(RunningAhead, ABoundedQueueHoldsThemBack) {
  const RunView run = RecordPool(PoolAndTrainer(0.0002, 0.005, 4));
  const PipelineModel model(run);
  EXPECT_EQ(model.stages()[0].taken_ratio, 1);
  EXPECT_EQ(model.cores_ahead(), 0);
  EXPECT_EQ(model.current().queue_capacity[0], 4);
}

}  // namespace
}  // namespace headrace::analysis
