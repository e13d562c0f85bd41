// Operators whose c is not told apart: the stage's CPU time stays exact, the operators' lie
// anywhere between their bounds, and every draw adds up.
#include <gtest/gtest.h>

#include <algorithm>

#include "analysis/model/bottleneck.h"
#include "tests/analysis/synthetic_run.h"

namespace headrace::analysis {
namespace {

// One stage reads (blocked) and decodes (on a CPU) in turn, another only computes.
RunView MixedOperators() {
  SimulatedPipeline pipeline;
  pipeline.cores = 4;
  pipeline.consumer_s = 0.001;
  pipeline.stages.push_back(
      {"load", 1, 4, {{"read", 0, 0.003, 0, 0, 0.1, -1}, {"decode", 0.002, 0, 0, 0, 0.1, -1}}});
  pipeline.stages.push_back({"batch", 1, 4, {{"batch", 0.001, 0, 0, 0, 0.1, -1}}});
  return Record(pipeline, 10, 1);
}

// As accounts at level 2 have it where visits are short: of the stage's CPU time each operator had
// all that the others leave it, or none.
void Hide(OperatorCounters* op, const OperatorCounters& other) {
  const int64_t cpu = *op->on_cpu_ns + *other.on_cpu_ns;
  op->on_cpu_low_ns = std::max<int64_t>(0, cpu - other.busy_ns);
  op->on_cpu_high_ns = std::min(cpu, op->busy_ns);
  op->blocked_low_ns = op->busy_ns - *op->on_cpu_high_ns;
  op->blocked_high_ns = op->busy_ns - *op->on_cpu_low_ns;
}
void HideLoad(std::vector<OperatorCounters*> ops) {
  const OperatorCounters read = *ops[0], decode = *ops[1];
  Hide(ops[0], decode);
  Hide(ops[1], read);
  for (OperatorCounters* op : {ops[0], ops[1]}) {
    op->on_cpu_ns.reset();
    op->blocked_ns.reset();
    op->runnable_ns.reset();
  }
}
RunView Hidden() {
  RunView run = MixedOperators();
  HideLoad({&run.operators[0], &run.operators[1]});
  for (WindowRow& window : run.windows) HideLoad({&window.operators[0], &window.operators[1]});
  return run;
}

TEST(OperatorSplit, TheStageIsAsExactAsIfItsOperatorsWereTold) {
  const RunView told_run = MixedOperators(), hidden_run = Hidden();
  const PipelineModel told(told_run), hidden(hidden_run);
  EXPECT_TRUE(told.splits_operators());
  EXPECT_FALSE(hidden.splits_operators());
  EXPECT_TRUE(hidden.splits_cpu());
  EXPECT_NEAR(hidden.demands().stage_cpu_s[0], told.demands().stage_cpu_s[0], 1e-5);
  EXPECT_NEAR(hidden.demands().stage_s[0], told.demands().stage_s[0], 1e-4);
  EXPECT_NEAR(hidden.demands().cpu_s, told.demands().cpu_s, 1e-5);
  EXPECT_EQ(FindBottleneck(hidden).findings[0].limit.name,
            FindBottleneck(told).findings[0].limit.name);
}

TEST(OperatorSplit, TheTruthIsBetweenTheBounds) {
  const RunView told_run = MixedOperators(), hidden_run = Hidden();
  const PipelineModel told(told_run), hidden(hidden_run);
  for (size_t i = 0; i < 3; ++i) {
    const Demands::Operator& op = hidden.demands().operators[i];
    const double truth = told.demands().operators[i].cpu_s;
    EXPECT_LE(op.cpu_low_s, truth + 1e-6) << i;
    EXPECT_GE(op.cpu_high_s, truth - 1e-6) << i;
    EXPECT_LE(op.cpu_low_s, op.cpu_s + 1e-9) << i;
    EXPECT_GE(op.cpu_high_s, op.cpu_s - 1e-9) << i;
  }
  EXPECT_EQ(told.demands().operators[1].cpu_low_s, told.demands().operators[1].cpu_high_s);
}

TEST(OperatorSplit, DrawsReachOverTheBoundsAndAddUp) {
  const RunView run = Hidden();
  const PipelineModel model(run);
  double least = 1, most = 0;
  for (const Demands& draw : model.Bootstrap()) {
    const double read = draw.operators[0].cpu_s, decode = draw.operators[1].cpu_s;
    least = std::min(least, decode);
    most = std::max(most, decode);
    EXPECT_NEAR(read + decode, 0.002, 0.0002) << "the stage's CPU time is known";
    EXPECT_GE(read, 0);
  }
  EXPECT_LT(least, 0.0007) << "decode may only have slept";
  EXPECT_GT(most, 0.0015) << "it may have computed all the time, as it did";
}

TEST(OperatorSplit, WithoutAnyCpuTimeNothingIsSplit) {
  RunView run = Hidden();
  for (StageRow& stage : run.stages) stage.on_cpu_ns.reset();
  for (WindowRow& window : run.windows) {
    for (StageCounters& stage : window.stages) stage.on_cpu_ns.reset();
  }
  EXPECT_FALSE(PipelineModel(run).splits_cpu());
}

}  // namespace
}  // namespace headrace::analysis
