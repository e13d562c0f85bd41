// What cost at several loads says of contention, what it is taken for without, and what it does to
// predictions; and the CPU time of the consumer's threads, which takes cores from the stages.
#include "analysis/model/contention.h"

#include <gtest/gtest.h>

#include <cmath>

#include "analysis/model/limits/bounds.h"
#include "analysis/model/prediction.h"
#include "tests/analysis/synthetic_run.h"

namespace headrace::analysis {
namespace {

// Runs at those loads that cost what `each` makes of them, times e to the noise of each.
std::vector<LoadRow> Loads(double each, const std::vector<double>& busy,
                           const std::vector<double>& noise = {}) {
  std::vector<LoadRow> loads;
  for (size_t i = 0; i < busy.size(); ++i) {
    const double cost = 1e-5 * (1 + each * std::max(0.0, busy[i] - 1));
    loads.push_back({cost * std::exp(i < noise.size() ? noise[i] : 0), busy[i], i == 0});
  }
  return loads;
}

TEST(Contention, IsFittedToRunsAtSeveralLoads) {
  for (const double each : {0.0, 0.02, 0.05, 0.1}) {
    RunView run;
    run.loads = Loads(each, {2, 4, 8, 15}, {0.01, -0.01, 0.01, -0.005});
    const Contention fitted = FitContention(run, 16);
    EXPECT_TRUE(fitted.fitted());
    EXPECT_EQ(fitted.runs, 4u);
    EXPECT_EQ(fitted.least_busy, 2);
    EXPECT_EQ(fitted.most_busy, 15);
    EXPECT_NEAR(fitted.each, each, 0.012) << each;
    EXPECT_LT(fitted.deviation, 0.02) << each;
  }
}

TEST(Contention, RunsThatScatterLeaveMoreOpen) {
  RunView run;
  std::vector<double> busy, calm, wild;
  for (int i = 0; i < 50; ++i) {
    busy.push_back(1 + i % 8);
    calm.push_back(i % 2 == 0 ? 0.01 : -0.01);
    wild.push_back(i / 8 % 2 == 0 ? 0.11 : -0.11);
  }
  run.loads = Loads(0.05, busy, calm);
  const Contention narrow = FitContention(run, 16);
  run.loads = Loads(0.05, busy, wild);
  const Contention wide = FitContention(run, 16);
  ASSERT_TRUE(narrow.fitted() && wide.fitted());
  EXPECT_GT(wide.deviation, 3 * narrow.deviation);
  EXPECT_NEAR(wide.each, 0.05, 2 * wide.deviation);
}

TEST(Contention, WhatNobodySawDoesNotGrowWithoutEnd) {
  RunView run;
  const Contention prior = FitContention(run, 2);
  EXPECT_LT(prior.CostAt(256), 1.05);
  run.loads = Loads(0.02, {1, 1.5, 2});
  const Contention fitted = FitContention(run, 2);
  ASSERT_TRUE(fitted.fitted());
  EXPECT_EQ(fitted.CostAt(256), fitted.CostAt(8));
}

TEST(Contention, RunsAtOneLoadSayNothing) {
  RunView run;
  run.loads = Loads(0.1, {1.9, 1.95, 2.05});
  const Contention prior = FitContention(run, 16);
  EXPECT_FALSE(prior.fitted());
  EXPECT_GT(prior.each, 0);
  EXPECT_NEAR(prior.CostAt(16), 1.45, 0.01) << "0.03 for each of the other cores";
  run.loads.clear();
  EXPECT_EQ(FitContention(run, 16).each, prior.each);
}

TEST(Contention, RunsOfOtherWorkAreLeftOut) {
  RunView run;
  run.loads = Loads(0, {1, 2, 3, 8});
  run.loads[3].cpu_s_per_row *= 5;
  const Contention fitted = FitContention(run, 16);
  EXPECT_EQ(fitted.runs, 3u);
  EXPECT_LT(fitted.each, 0.02);
}

TEST(Contention, OneCoreAndLessHaveNone) {
  Contention contention;
  contention.each = 0.1;
  EXPECT_EQ(contention.CostAt(0.2), 1);
  EXPECT_EQ(contention.CostAt(1), 1);
  EXPECT_DOUBLE_EQ(contention.CostAt(3), 1.2);
  contention.deviation = 1;
  EXPECT_EQ(contention.Drawn(-3).each, 0);
}

// One stage that only computes, on four cores.
RunView Computing(int threads) {
  SimulatedPipeline pipeline;
  pipeline.cores = 4;
  pipeline.stages.push_back({"work", threads, 8, {{"spin", 0.01, 0, 0, 0, 0.1, -1}}});
  return Record(pipeline, 20, 7);
}

TEST(Contention, MakesMoreBusyCoresGainLess) {
  RunView run = Computing(1);
  Settings four;
  const auto rate = [&](double each) {
    run.loads = Loads(each, {1, 2, 3.5});
    const PipelineModel model(run);
    four = model.current();
    four.parallelism[0] = 4;
    const Prediction prediction = Predictor(model).Predict({four, {}});
    EXPECT_LT(prediction.interval.low, prediction.rate);
    return prediction;
  };
  const Prediction without = rate(0), with = rate(0.1);
  EXPECT_NEAR(without.rate, 400, 20);
  EXPECT_NEAR(with.rate, 400 / 1.3, 20);
  EXPECT_NEAR(with.cpu_cost, 1.3, 0.04);
}

TEST(Contention, ChangesNothingAtPresentSettings) {
  RunView run = Computing(4);
  run.loads = Loads(0.1, {3.9, 1, 2});
  const PipelineModel model(run);
  const Predictor predictor(model);
  EXPECT_TRUE(predictor.contention().fitted());
  EXPECT_NEAR(predictor.Rate({model.current(), {}}) / model.demands().rate, 1, 0.02);
  const Demands same =
      AtLoad(model, model.demands(), model.current(),
             ExpectedLoad(model, model.demands(), model.current()), predictor.contention());
  EXPECT_DOUBLE_EQ(same.cpu_s, model.demands().cpu_s);
  // Half the threads make each cheaper.
  Settings two = model.current();
  two.parallelism[0] = 2;
  EXPECT_NEAR(predictor.Rate({two, {}}), 200 * 1.3 / 1.1, 12);
}

// The consumer's thread works 2 ms a batch, of which its operator knows nothing.
TEST(Contention, ThreadsOfTheConsumerTakeCores) {
  RunView run = Computing(4);
  const double before = PipelineModel(run).demands().cpu_s;
  StageRow stage;
  stage.name = "consumer";
  stage.stage_index = 1;
  stage.last_parallelism_count = 1;
  OperatorRow op;
  op.name = "consumer";
  op.kind = "consumer";
  op.stage = "consumer";
  op.stage_index = 1;
  op.source = "thread_clock";
  op.on_cpu_ns = 0;
  stage.lifetime_ns = 0;
  stage.on_cpu_ns = stage.runnable_ns = 0;
  for (WindowRow& window : run.windows) {
    StageCounters threads;
    threads.parallelism_count = 1;
    threads.lifetime_ns = window.duration_ns;
    threads.on_cpu_ns = Ns(0.002 * static_cast<double>(window.steps.steps_count));
    threads.runnable_ns = 0;
    *stage.on_cpu_ns += *threads.on_cpu_ns;
    stage.lifetime_ns += threads.lifetime_ns;
    OperatorCounters none;
    none.on_cpu_ns = 0;
    window.operators.push_back(none);
    window.stages.push_back(threads);
  }
  run.operators.push_back(op);
  run.stages.push_back(stage);
  const PipelineModel model(run);
  ASSERT_EQ(model.stages().size(), 1u);
  EXPECT_NEAR(model.demands().consumer_cpu_s, 0.002, 1e-4);
  EXPECT_NEAR(model.demands().cpu_s - before, 0.002, 1e-4);
  // They limit the consumer's thread, not the stage's.
  const SimulatedPipeline simulated = model.Simulated(model.current(), model.demands());
  EXPECT_NEAR(simulated.consumer_cpu_s, 0.002, 1e-4);
  EXPECT_NEAR(simulated.stages[0].operators[0].cpu_s, 0.01, 5e-4);
  const Limit cores = Bounds(model, model.demands(), model.current())[1];
  EXPECT_NEAR(cores.bound, 4 / 0.012, 15);
}

// The consumer computes 4 ms a batch on the cores; level 1 knows no CPU time of its operator.
TEST(Contention, WhatTheConsumerComputesCountsOnce) {
  for (const bool measured : {true, false}) {
    RunView run = Computing(2);
    StageRow stage;
    stage.name = "consumer";
    stage.stage_index = 1;
    stage.last_parallelism_count = 1;
    stage.on_cpu_ns = stage.runnable_ns = 0;
    OperatorRow op;
    op.name = op.kind = op.stage = "consumer";
    op.stage_index = 1;
    if (measured) op.on_cpu_ns = 0;
    run.steps.compute_ns = 0;
    for (WindowRow& window : run.windows) {
      const int64_t compute_ns = Ns(0.004 * static_cast<double>(window.steps.steps_count));
      window.steps.compute_ns = compute_ns;
      run.steps.compute_ns += compute_ns;
      StageCounters threads;
      threads.parallelism_count = 1;
      threads.lifetime_ns = window.duration_ns;
      threads.on_cpu_ns = compute_ns;
      threads.runnable_ns = 0;
      *stage.on_cpu_ns += compute_ns;
      stage.lifetime_ns += threads.lifetime_ns;
      OperatorCounters counters;
      if (measured) {
        counters.on_cpu_ns = compute_ns;
        *op.on_cpu_ns += compute_ns;
      }
      window.operators.push_back(counters);
      window.stages.push_back(threads);
    }
    run.operators.push_back(op);
    run.stages.push_back(stage);
    const PipelineModel model(run);
    const SimulatedPipeline simulated = model.Simulated(model.current(), model.demands());
    EXPECT_NEAR(simulated.consumer_cpu_s, 0.004, 2e-4) << measured;
    EXPECT_NEAR(simulated.consumer_s, 0, 2e-4) << measured;
    // A faster consumer computes less on the cores.
    const Demands half = Apply(model, model.demands(), {{Scaled::kConsumer, 0, 0.5}});
    EXPECT_NEAR(model.demands().cpu_s - half.cpu_s, 0.002, 1e-4) << measured;
    EXPECT_NEAR(half.consumer_s, 0.002, 1e-4) << measured;
    EXPECT_NEAR(half.consumer_cpu_s, 0.002, 1e-4) << measured;
  }
}

TEST(Contention, AConsumerOnTheCoresIsSimulatedThere) {
  SimulatedPipeline pipeline;
  pipeline.cores = 1;
  pipeline.stages.push_back({"work", 1, 8, {{"spin", 0.01, 0, 0, 0, 0, -1}}});
  pipeline.consumer_cpu_s = 0.01;
  EXPECT_NEAR(SimulatedRate(pipeline, 500, 1).value(), 50, 1);
  pipeline.cores = 2;
  EXPECT_NEAR(SimulatedRate(pipeline, 500, 1).value(), 100, 1);
  pipeline.consumer_s = 0.01;  // and as long off them
  EXPECT_NEAR(SimulatedRate(pipeline, 500, 1).value(), 50, 1);
}

}  // namespace
}  // namespace headrace::analysis
