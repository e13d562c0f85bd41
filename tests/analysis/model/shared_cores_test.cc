// Cores that other programs use as well, and what a consumer wants that had to wait for one.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "analysis/advice/next_step.h"
#include "analysis/model/bottleneck.h"
#include "analysis/model/limits/bounds.h"
#include "tests/analysis/made_runs.h"

namespace headrace::analysis {
namespace {

using testing::HasSubstr;
using testing::Not;

SimulatedPipeline Parsing(int threads) {
  SimulatedPipeline pipeline;
  pipeline.cores = 2;
  pipeline.stages = {{"load", 1, 4, {{"load", 0.0005, 0.003, 0, 0, 0.2, -1}}},
                     {"parse", threads, 4, {{"parse", 0.012, 0, 0, 0, 0.2, -1}}}};
  pipeline.consumer_s = 0.002;
  return pipeline;
}

TEST(SharedCores, AThreadsShareIsMeasuredAndNotHalfOfTheCores) {
  const RunView run = RecordBeside(Parsing(1), 6, 30, 1);
  const PipelineModel model(run);
  EXPECT_TRUE(model.cores_contended());
  EXPECT_LT(model.cores_used().value(), 0.45);
  EXPECT_NEAR(model.cores_available() / model.cores_used().value(), 1, 0.15)
      << "its threads have what they can get, which is far from half of two cores";
  const Bottleneck bottleneck = FindBottleneck(model);
  EXPECT_EQ(bottleneck.findings[0].limit.kind_name(), kCoresLimit);
  EXPECT_GT(bottleneck.findings[0].utilisation, 0.85);
  ASSERT_TRUE(bottleneck.alone) << "others hold the cores";
  EXPECT_EQ(bottleneck.alone->name, "parse");
}

// Four threads for two cores.
TEST(SharedCores, CoresThatLimitWithoutOthersLimitAlone) {
  const RunView run = RecordBeside(Parsing(4), 0, 30, 1);
  const Bottleneck bottleneck = FindBottleneck(PipelineModel(run));
  EXPECT_EQ(bottleneck.findings[0].limit.kind_name(), kCoresLimit);
  EXPECT_FALSE(bottleneck.alone);
}

TEST(SharedCores, ALimitIsLessSureBesideOthers) {
  const auto sure = [](const RunView& run) {
    return FindBottleneck(PipelineModel(run)).findings[0].probability;
  };
  EXPECT_GT(sure(Record(Parsing(1), 30, 1)), 0.95);
  EXPECT_LE(sure(RecordBeside(Parsing(1), 6, 30, 1)), 0.851);
}

TEST(SharedCores, ASecondThreadTakesASecondShare) {
  const RunView run = RecordBeside(Parsing(1), 3, 30, 1);
  const PipelineModel model(run);
  ASSERT_TRUE(model.cores_contended());
  const RunView truth_run = RecordBeside(Parsing(2), 3, 30, 2);
  const double truth = PipelineModel(truth_run).demands().rate;
  EXPECT_GT(truth, 1.3 * model.demands().rate);
  Settings two = model.current();
  two.parallelism[1] = 2;
  const Prediction prediction = Predictor(model).Predict({two, {}});
  EXPECT_LE(prediction.interval.low, truth);
  EXPECT_GE(prediction.interval.high, truth);
  EXPECT_NEAR(prediction.rate / truth, 1, 0.2);
  const Statements statements = MakeStatements(run);
  const NextStep next = NextStepOf(run, statements);
  EXPECT_THAT(next.text, Not(HasSubstr("No setting")));
  EXPECT_THAT(next.text, HasSubstr("parse threads 1 ->"));
}

// The kernel may divide cores by control group before it does by thread.
TEST(SharedCores, OthersThatMayBeInAnotherGroupNeedNotYield) {
  for (const bool apart : {false, true}) {
    SCOPED_TRACE(apart);
    RunView run = RecordBeside(Parsing(1), 3, 30, 1);
    const double shared =
        Predictor(PipelineModel(run)).Predict({PipelineModel(run).current(), {}}).rate;
    for (HostRow& row : run.hosts) {
      if (apart && row.metric == "host_peer_cpu_ns") row.last_value = 0.3 * *row.last_value;
    }
    const PipelineModel model(run);
    ASSERT_TRUE(model.cores_contended());
    EXPECT_EQ(model.others_are_peers(), !apart);
    Settings eight = model.current();
    eight.parallelism[1] = 8;
    const Prediction prediction = Predictor(model).Predict({eight, {}});
    EXPECT_EQ(prediction.interval.low > 1.15 * shared, !apart) << prediction.interval.low / shared;
    EXPECT_GT(prediction.interval.high, 1.5 * shared);
    const NextStep next = NextStepOf(run, MakeStatements(run));
    EXPECT_EQ(next.kind, apart ? NextKind::kCompare : NextKind::kChange);
    EXPECT_EQ(next.text.find("in other control groups or sessions") != std::string::npos, apart)
        << next.text;
  }
}

TEST(SharedCores, WithoutOthersTheyAreOnesOwn) {
  RunView run = RecordBeside(Parsing(2), 0, 30, 1);
  const PipelineModel model(run);
  EXPECT_FALSE(model.cores_contended());
  EXPECT_NEAR(model.cores_available(), 2, 0.05);
}

// Others fill what this program leaves, and give way to it: what it uses is not all that it may
// get.
TEST(SharedCores, ProgramsThatGiveWayTakeNoCoreFromOneThatSleeps) {
  SimulatedPipeline pipeline;
  pipeline.cores = 2;
  pipeline.stages = {{"load", 1, 4, {{"load", 0.0001, 0.006, 0, 0, 0.05, -1}}},
                     {"parse", 1, 4, {{"parse", 0.001, 0, 0, 0, 0.05, -1}}}};
  pipeline.consumer_s = 0.001;
  RunView run = RecordBeside(pipeline, 0, 30, 1);
  for (HostRow& row : run.hosts) {
    if (row.metric == "host_busy_cores") row.mean_value = 2;
    if (row.metric == "host_peer_cpu_ns") row.last_value = 2.0 * 30e9;
  }
  const PipelineModel model(run);
  EXPECT_GT(model.cores_available(), 2 * model.cores_used().value());
  const Bottleneck bottleneck = FindBottleneck(model);
  EXPECT_EQ(bottleneck.findings[0].limit.name, "load");
  EXPECT_GE(bottleneck.findings[0].probability, 0.85);
  EXPECT_THAT(NextStepOf(run, MakeStatements(run)).text, HasSubstr("load threads 1 ->"));
}

// Threads that wait for a core more than they have one use what there is, and no less.
TEST(SharedCores, WhatIsInUseIsThere) {
  RunView run = RecordBeside(Parsing(1), 6, 30, 1);
  // The stage that computes gets more than the mean share: the other waits longer.
  for (WindowRow& window : run.windows) {
    window.stages[0].runnable_ns = *window.stages[0].runnable_ns + window.duration_ns / 2;
  }
  const PipelineModel model(run);
  ASSERT_TRUE(model.cores_contended());
  EXPECT_GE(model.cores_available(), model.cores_used().value());
  for (const Limit& limit : Bounds(model, model.demands(), model.current())) {
    if (limit.Is(kCoresLimit)) {
      EXPECT_GE(limit.bound, 0.999 * model.demands().rate);
    }
  }
}

// On a part of a large machine it is not known whose cores the others use.
TEST(SharedCores, OthersElsewhereOnTheMachineAreNotOnTheseCores) {
  RunView run = RecordBeside(Parsing(2), 0, 30, 1);
  for (HostRow& row : run.hosts) {
    if (row.metric == "host_cores") row.mean_value = 64;
    if (row.metric == "host_busy_cores") row.mean_value = 14;
  }
  const PipelineModel model(run);
  EXPECT_FALSE(model.cores_contended());
  EXPECT_NEAR(model.cores_available(), 2, 0.01);
  EXPECT_NEAR(model.cores_other_here().value(), 0, 0.01);
  EXPECT_THAT(NextStepOf(run, MakeStatements(run)).text, Not(HasSubstr("other programs")));
}

// The same, seen from the consumer: cv of 0, half its step without a core.
RunView BusyConsumer(bool by_operator) {
  SimulatedPipeline pipeline;
  pipeline.cores = 4;
  pipeline.stages = {{"fetch", 1, 4, {{"fetch", 0.0002, 0.0075, 0, 0, 0.1, -1}}}};
  pipeline.consumer_s = 0.006;
  RunView run = Record(pipeline, 20, 3);
  // In each step, half of the time was spent ready but without a core.
  const auto consumer = [&](const StepCounters& steps) {
    OperatorCounters op;
    op.completions_count = steps.steps_count;
    op.busy_ns = steps.compute_ns;
    op.on_cpu_ns = steps.compute_ns / 10;
    if (by_operator) {
      op.runnable_ns = steps.compute_ns / 2;
      op.blocked_ns = op.busy_ns - *op.on_cpu_ns - *op.runnable_ns;
    }
    return op;
  };
  const auto threads = [&](const StepCounters& steps) {
    StageCounters stage;
    stage.parallelism_count = 1;
    stage.lifetime_ns = steps.compute_ns + steps.wait_ns;
    stage.on_cpu_ns = steps.compute_ns / 10;
    stage.runnable_ns = steps.compute_ns / 2;
    return stage;
  };
  OperatorRow op;
  static_cast<OperatorCounters&>(op) = consumer(run.steps);
  op.name = op.stage = "trainer";
  op.kind = "consumer";
  op.stage_index = 1;
  op.source = by_operator ? "ebpf" : "thread_clock";
  run.operators.push_back(op);
  StageRow stage;
  static_cast<StageCounters&>(stage) = threads(run.steps);
  stage.name = "trainer";
  stage.stage_index = 1;
  run.stages.push_back(stage);
  for (WindowRow& window : run.windows) {
    window.operators.push_back(consumer(window.steps));
    window.stages.push_back(threads(window.steps));
  }
  return run;
}

TEST(BusyConsumer, WaitingForACoreIsNoDemandOfTheConsumer) {
  const RunView run = BusyConsumer(true);
  const PipelineModel model(run);
  EXPECT_NEAR(model.demands().consumer_s, 0.003, 0.0001);
  ASSERT_TRUE(model.consumer_runnable_ratio().has_value());
  EXPECT_NEAR(*model.consumer_runnable_ratio(), 0.5, 0.02);
  const Bottleneck bottleneck = FindBottleneck(model);
  EXPECT_EQ(bottleneck.findings[0].limit.name, "fetch");
  for (const Finding& finding : bottleneck.findings) {
    if (finding.limit.Is(kConsumerLimit)) {
      EXPECT_NEAR(finding.limit.bound, 333, 10);
    }
  }
}

TEST(BusyConsumer, WhatIsNotKnownOfItsWaitIsInTheInterval) {
  const RunView run = BusyConsumer(false);
  const PipelineModel model(run);
  EXPECT_LE(model.demands().consumer_least_s, 0.0031);
  EXPECT_GE(model.demands().consumer_most_s, model.demands().consumer_s);
  for (const Finding& finding : FindBottleneck(model).findings) {
    if (!finding.limit.Is(kConsumerLimit)) continue;
    EXPECT_LE(finding.bound_interval.low, finding.limit.bound);
    EXPECT_GE(finding.bound_interval.high, 0.95 / 0.003)
        << "it may have waited for as long as its thread did";
  }
}

TEST(BusyConsumer, SeveralConsumersTakeSeveralTimesAsMuch) {
  // Three trainers in one recording: three times the steps in the same time, each as long.
  SimulatedPipeline pipeline;
  pipeline.cores = 8;
  pipeline.stages = {{"fetch", 1, 4, {{"fetch", 0.0002, 0.0095, 0, 0, 0.1, -1}}}};
  pipeline.consumer_s = 0.008;
  RunView run = Record(pipeline, 20, 3);
  run.stages[0].last_parallelism_count = 3;
  const auto thrice = [](StepCounters* steps) {
    steps->steps_count *= 3;
    steps->rows_count *= 3;
    steps->wait_ns *= 3;
    steps->compute_ns *= 3;
  };
  thrice(&run.steps);
  const auto all = [](OperatorCounters* op) {
    op->completions_count *= 3;
    op->rows_count *= 3;
    op->busy_ns *= 3;
    op->wait_in_ns *= 3;
    op->wait_out_ns *= 3;
    *op->on_cpu_ns *= 3;
  };
  all(&run.operators[0]);
  for (WindowRow& window : run.windows) {
    thrice(&window.steps);
    all(&window.operators[0]);
  }
  run.queues.clear();
  for (WindowRow& window : run.windows) window.queues.clear();
  const PipelineModel model(run);
  EXPECT_EQ(model.consumers(), 3);
  for (const Finding& finding : FindBottleneck(model).findings) {
    if (!finding.limit.Is(kConsumerLimit)) continue;
    EXPECT_NEAR(finding.limit.bound, 3 / 0.008, 10);
    EXPECT_LT(finding.utilisation, 1.02) << "no more is observed than is allowed";
  }
}

// What a program does before its first batch is no cost of its batches.
TEST(OtherThreads, StartUpIsNoCostOfBatches) {
  RunView run = Record(Parsing(1), 20, 1);
  const auto grown = [&](double start_s) {
    RunView view = run;
    double cpu_ns = start_s * 1e9;
    for (const WindowRow& window : view.windows) {
      for (const StageCounters& stage : window.stages) {
        cpu_ns += static_cast<double>(stage.on_cpu_ns.value_or(0));
      }
      view.process_cpu.push_back({window.start_ns + window.duration_ns, cpu_ns});
    }
    view.hosts.push_back({"process_cpu_ns", "ns", "counter", cpu_ns, cpu_ns, cpu_ns, cpu_ns});
    return view;
  };
  const RunView quick = grown(0), slow = grown(30);
  EXPECT_NEAR(PipelineModel(slow).demands().cpu_s / PipelineModel(quick).demands().cpu_s, 1, 0.02);
}

}  // namespace
}  // namespace headrace::analysis
