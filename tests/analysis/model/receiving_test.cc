// What the trainer's own thread does for batches that workers made: it is loading, and no number of
// workers helps it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "analysis/advice/next_step.h"
#include "analysis/advice/recommendations.h"
#include "analysis/model/bottleneck.h"
#include "analysis/model/limits/limit_kind.h"
#include "analysis/model/prediction.h"
#include "tests/analysis/made_runs.h"
#include "tests/analysis/process_figure.h"

namespace headrace::analysis {
namespace {

using testing::HasSubstr;

const OperatorModel& Blamed(const PipelineModel& model, const Bottleneck& bottleneck) {
  return model.operators()[bottleneck.findings[0].culprit.value()];
}

TEST(Receiving, IsWorkOfTheTrainersThread) {
  Received costs;
  costs.receive_cpu_s = 0.05;
  costs.receive_bytes = 48e6;
  const RunView run = RecordReceived(costs, 10, 1);
  const PipelineModel model(run);
  ASSERT_EQ(model.stages().size(), 2u);
  EXPECT_FALSE(model.stages()[0].on_consumer);
  EXPECT_TRUE(model.stages()[1].stays_on_consumer);
  EXPECT_NEAR(model.demands().stage_s[1], 0.05, 0.002);
  EXPECT_NEAR(model.demands().consumer_s, 0.002, 0.0002);
  const Bottleneck bottleneck = FindBottleneck(model);
  EXPECT_EQ(bottleneck.findings[0].limit.kind_name(), kThreadLimit);
  EXPECT_EQ(Blamed(model, bottleneck).name, "receive");
  EXPECT_NEAR(bottleneck.findings[0].limit.bound, 1 / 0.052, 0.5);
}

// What tf.data makes in the trainer's own thread, behind stages whose threads have time left, could
// have threads of its own.
TEST(Receiving, WhatTfDataMakesThereCanBeMoved) {
  Received costs;
  costs.receive_cpu_s = 0.05;
  RunView run = RecordReceived(costs, 10, 1);
  run.run.pipeline_path.clear();
  for (StageRow& stage : run.stages) {
    if (stage.name == "workers") stage.lifetime_ns *= 10;
  }
  const auto model_with = [&](const std::string& name) {
    RunView named = run;
    for (StageRow& stage : named.stages) {
      if (stage.name != "receiver") continue;
      stage.name = name;
      stage.parallelism_count = stage.last_parallelism_count = 1;
      stage.max_parallelism_count = 0;
    }
    for (OperatorRow& op : named.operators) {
      if (op.stage == "receiver") op.stage = name;
    }
    const PipelineModel model(named);
    return std::pair(model.stages()[1].on_consumer, model.stages()[1].stays_on_consumer);
  };
  EXPECT_EQ(model_with("tf.data after prefetch"), std::pair(true, false));
  EXPECT_EQ(model_with("tf.data prefetch"), std::pair(false, false));
}

TEST(Receiving, LargeBatchesAreToShareMemory) {
  Received costs;
  costs.receive_cpu_s = 0.05;
  costs.receive_bytes = 48e6;
  const RunView run = RecordReceived(costs, 10, 1);
  const NextStep next = NextStepOf(run, MakeStatements(run));
  EXPECT_EQ(next.kind, NextKind::kChange);
  EXPECT_THAT(next.text, HasSubstr("tensors instead of arrays"));
}

// The trainer's thread asks a worker that computes for the memory of each tensor.
TEST(Receiving, TensorsAreToBeSharedByName) {
  Received costs;
  costs.make_cpu_s = 0.002;
  costs.unpickle_blocked_s = 0.006;
  const RunView run = RecordReceived(costs, 10, 1);
  const PipelineModel model(run);
  const Bottleneck bottleneck = FindBottleneck(model);
  EXPECT_EQ(bottleneck.findings[0].limit.kind_name(), kThreadLimit);
  EXPECT_EQ(Blamed(model, bottleneck).name, "unpickle");
  const NextStep next = NextStepOf(run, MakeStatements(run));
  EXPECT_EQ(next.kind, NextKind::kChange);
  EXPECT_THAT(next.text, HasSubstr("set_sharing_strategy"));
  EXPECT_GT(next.gain, 0.5) << "of 8 ms, 6 are waited";
}

// Unpickling may be blamed for what it computes as well; sharing by name saves its waits alone.
TEST(Receiving, KeptWorkersComeFirstWhereTheySaveMore) {
  const auto rule_of_unpickling = [](double start_s) {
    Received costs;
    costs.unpickle_blocked_s = 0.004;
    costs.start_s = start_s;
    const RunView run = RecordReceived(costs, 10, 1);
    const auto unpickle = std::find_if(run.operators.begin(), run.operators.end(),
                                       [](const OperatorRow& op) { return op.name == "unpickle"; });
    return RuleOfReceiving(PipelineModel(run),
                           static_cast<size_t>(unpickle - run.operators.begin()));
  };
  EXPECT_EQ(rule_of_unpickling(0.002), "R30");
  EXPECT_EQ(rule_of_unpickling(0.008), "R25");
}

// While its worker computes, the trainer's thread waits for what it asks: that is the worker's
// time.
TEST(Receiving, WaitsForAWorkerThatComputesAreTheWorkers) {
  Received costs;
  costs.workers = 1;
  costs.cores = 4;
  costs.make_cpu_s = 0.032;
  costs.unpickle_blocked_s = 0.031;
  const RunView run = RecordReceived(costs, 10, 1);
  const PipelineModel model(run);
  EXPECT_EQ(FindBottleneck(model).findings[0].limit.kind_name(), kStageLimit);
  const Predictor predictor(model);
  Settings settings = model.current();
  settings.parallelism[0] = 2;
  EXPECT_GT(predictor.Rate({settings, {}}), 1.6 * model.demands().rate);
}

// Nobody gives the receiver threads, and more workers are not advised for it.
TEST(Receiving, NoPlanGivesItThreads) {
  Received costs;
  costs.receive_cpu_s = 0.05;
  const RunView run = RecordReceived(costs, 10, 1);
  const Statements statements = MakeStatements(run);
  ASSERT_TRUE(statements.allocation);
  EXPECT_EQ(statements.allocation->settings.parallelism[1], 0);
  EXPECT_LT(statements.allocation->predicted, 1.03 * statements.allocation->now);
  EXPECT_THAT(NextStepOf(run, statements).text, HasSubstr("Make receive cheaper"));
}

TEST(Receiving, WaitsForWorkersAreNoWorkOfIts) {
  Received costs;
  costs.make_cpu_s = 0.02;
  costs.wait_s = 0.008;
  const RunView run = RecordReceived(costs, 10, 1);
  const PipelineModel model(run);
  EXPECT_NEAR(model.demands().stage_s[1], 0.0001, 0.0001);
  const Bottleneck bottleneck = FindBottleneck(model);
  EXPECT_NE(bottleneck.findings[0].limit.kind_name(), kThreadLimit);
}

TEST(Receiving, AStepThatTakesLongIsTheLimitAndNotItsThread) {
  Received costs;
  costs.step_cpu_s = 0.03;
  const RunView run = RecordReceived(costs, 10, 1);
  const PipelineModel model(run);
  EXPECT_EQ(FindBottleneck(model).findings[0].limit.kind_name(), kConsumerLimit);
}

// The kind of an operator is its name where a program says nothing else.
TEST(Receiving, OperatorsOfTheUsersMayHaveItsWords) {
  for (const char* kind : {kOrderKind, kStartKind}) {
    RunView run = RecordOneThread({}, 10, 1);
    run.operators[0].name = run.operators[0].kind = kind;
    run.operators[0].wait_in_ns = run.operators[0].busy_ns;
    const PipelineModel model(run);
    EXPECT_FALSE(model.ordered());
    EXPECT_EQ(NextStepOf(run, MakeStatements(run)).text.find("persistent"), std::string::npos);
  }
  RunView run = RecordOneThread({}, 10, 1);
  run.operators[1].kind = "consumer";
  run.operators[0].kind = kOrderKind;
  run.operators[0].stage = "trainer";
  run.stages.erase(run.stages.begin());
  for (WindowRow& window : run.windows) window.stages.erase(window.stages.begin());
  EXPECT_FALSE(PipelineModel(run).ordered()) << "no stage at all";
}

// Two ranks receive at the same time.
TEST(Receiving, RanksDoNotWaitForEachOther) {
  Received costs;
  costs.ranks = 2;
  costs.workers = 4;
  costs.receive_cpu_s = 0.02;
  costs.step_cpu_s = 0.005;
  const RunView run = RecordReceived(costs, 10, 1);
  const PipelineModel model(run);
  ASSERT_EQ(model.consumers(), 2);
  const Bottleneck bottleneck = FindBottleneck(model);
  for (const Finding& finding : bottleneck.findings) {
    if (!finding.limit.Is(kThreadLimit)) continue;
    EXPECT_NEAR(finding.limit.bound, 2 / 0.025, 2);
  }
}

// Workers that are started again for each short epoch.
TEST(Receiving, WorkersAreToBeKept) {
  Received costs;
  costs.start_s = 0.1;
  costs.other_cpu_s = 0.15;
  const RunView run = RecordReceived(costs, 20, 1);
  const PipelineModel model(run);
  const Bottleneck bottleneck = FindBottleneck(model);
  EXPECT_EQ(bottleneck.findings[0].limit.kind_name(), kThreadLimit);
  EXPECT_EQ(Blamed(model, bottleneck).name, "start_workers");
  const NextStep next = NextStepOf(run, MakeStatements(run));
  EXPECT_EQ(next.kind, NextKind::kChange);
  EXPECT_THAT(next.text, HasSubstr("persistent_workers=True"));
}

// Workers are ended after the last wait of an epoch: their time is the trainer's thread's all the
// same.
TEST(Receiving, WhatEndsAnEpochIsTheTrainersThreads) {
  Received costs;
  costs.start_s = 0.1;
  costs.other_cpu_s = 0.15;
  RunView run = RecordReceived(costs, 20, 1);
  run.steps.wait_ns /= 3;
  const PipelineModel model(run);
  EXPECT_TRUE(model.loads_on_consumer());
  EXPECT_EQ(FindBottleneck(model).findings[0].limit.kind_name(), kThreadLimit);
}

// The trainer waits for one slow batch, and the workers have nothing to do meanwhile.
TEST(Receiving, TheOrderIsALimitWhereWorkersAreIdle) {
  Received costs;
  costs.workers = 4;
  costs.order_s = 0.01;
  const RunView run = RecordReceived(costs, 10, 1);
  const PipelineModel model(run);
  EXPECT_NEAR(model.demands().order_wait_most_s, 0.01, 0.001);
  EXPECT_GT(model.demands().order_wait_s, 0.8 * 0.01);
  const Bottleneck bottleneck = FindBottleneck(model);
  EXPECT_EQ(bottleneck.findings[0].limit.kind_name(), kOrderLimit);
  const NextStep next = NextStepOf(run, MakeStatements(run));
  EXPECT_THAT(next.text, HasSubstr("in_order=False"));
  EXPECT_GT(next.gain, 1) << "of 12 ms, 10 are waited";
}

// A thread that pins memory passes on in order what it gets, and never has to wait for that.
TEST(Receiving, TheOrderIsALimitBeforeAThreadThatPinsMemory) {
  Received costs;
  costs.workers = 4;
  costs.order_s = 0.01;
  RunView run = RecordReceived(costs, 10, 1);
  const double alone = PipelineModel(run).demands().order_wait_s;
  ASSERT_GT(alone, 0);
  StageRow stage = run.stages[0];
  stage.name = "pin_memory";
  stage.stage_index = static_cast<int64_t>(run.stages.size());
  stage.last_parallelism_count = stage.max_parallelism_count = 1;
  run.stages.push_back(stage);
  OperatorRow pin = run.operators[0];
  pin.name = pin.stage = "pin_memory";
  pin.kind = "transfer";
  pin.busy_ns = 100'000'000;
  pin.wait_in_ns = 9'900'000'000;
  pin.wait_out_ns = 0;
  run.operators.push_back(pin);
  for (WindowRow& window : run.windows) {
    window.stages.push_back(window.stages[0]);
    OperatorCounters counters;
    counters.busy_ns = window.duration_ns / 100;
    counters.wait_in_ns = window.duration_ns - counters.busy_ns;
    window.operators.push_back(counters);
  }
  EXPECT_DOUBLE_EQ(PipelineModel(run).demands().order_wait_s, alone);
}

// The slow batches are always of one worker: out of turn nobody waits for it either.
TEST(Receiving, WithoutOrderTheSlowestWorkerHoldsUpNobody) {
  Received costs;
  costs.workers = 4;
  costs.order_s = 0.01;
  RunView run = RecordReceived(costs, 10, 1);
  for (const int64_t pid : {100, 101, 102, 103}) {
    AddProcessFigure(&run, pid, "worker_batches_count", 200);
    AddProcessFigure(&run, pid, "worker_work_ns", pid == 102 ? 9.9e9 : 1e9);
    AddProcessFigure(&run, pid, "worker_wait_ns", pid == 102 ? 0.1e9 : 9e9);
  }
  ASSERT_TRUE(PipelineModel(run).uneven());
  const NextStep next = NextStepOf(run, MakeStatements(run));
  EXPECT_THAT(next.text, HasSubstr("in_order=False"));
  EXPECT_GT(next.gain, 1) << "of 12 ms, 10 are waited";
}

TEST(Receiving, TheOrderIsNoneWhereWorkersAreBusy) {
  Received costs;
  costs.make_cpu_s = 0.0001;
  costs.make_blocked_s = 0.0245;  // both of them, all the time
  costs.order_s = 0.01;
  const RunView run = RecordReceived(costs, 10, 1);
  const PipelineModel model(run);
  EXPECT_LT(model.demands().order_wait_s, 0.2 * model.demands().order_wait_most_s);
  EXPECT_NE(FindBottleneck(model).findings[0].limit.kind_name(), kOrderLimit);
  costs.workers = 1;
  const RunView by_one = RecordReceived(costs, 10, 1);
  EXPECT_EQ(PipelineModel(by_one).demands().order_wait_s, 0) << "one worker has no order to keep";
}

// Workers of which each waits for a lock such a share of its time; one like it gives it up, or not.
RunView WaitingForEachOther(int workers, double waited, bool by_its_like) {
  Received costs;
  costs.workers = workers;
  costs.make_cpu_s = 0.0005;
  costs.make_blocked_s = workers * 0.0102 - 0.0005;
  costs.wait_s = 0.0081;
  RunView run = RecordReceived(costs, 10, 1);
  MeasurementRow row;
  row.metric = "off_cpu_ns";
  row.operator_name = "getitem";
  row.stage = "workers";
  row.cause = "lock";
  row.value = waited * 10e9 * workers;
  run.measurements.push_back(row);
  row.metric = "wakeup_wait_ns";
  row.operator_name = row.stage = "";
  row.thread = "pt_data_worker (main)";
  row.subject = by_its_like ? "7/pt_data_worker (main)" : "7/helper";
  run.measurements.push_back(row);
  return run;
}

// n threads that wait for one lock a share w of their time: it is held n w / (n - 1) of the time.
TEST(SeenLock, IsFoundByHowMuchItsThreadsWait) {
  struct Case {
    int workers;
    double waited;
    bool is_lock;
    bool by_its_like = true;
  };
  for (const Case& c : {Case{4, 0.7, true}, Case{2, 0.45, true}, Case{4, 0.2, false},
                        Case{2, 0.8, false}, Case{1, 0.9, false}, Case{4, 0.7, false, false}}) {
    SCOPED_TRACE(c.workers);
    SCOPED_TRACE(c.waited);
    const RunView run = WaitingForEachOther(c.workers, c.waited, c.by_its_like);
    const PipelineModel model(run);
    const Bottleneck bottleneck = FindBottleneck(model);
    EXPECT_EQ(bottleneck.findings[0].limit.kind_name() == kLockLimit, c.is_lock);
    if (!c.is_lock) continue;
    EXPECT_THAT(bottleneck.findings[0].limit.kind->WithoutSetting(
                    model, bottleneck.findings[0].limit, "getitem"),
                HasSubstr("More threads only wait"));
    const Statements statements = MakeStatements(run);
    EXPECT_EQ(statements.allocation->settings.parallelism[0], c.workers);
  }
}

// To the kernel the queue of a device is a lock, too: what is accounted is not found a second time.
TEST(SeenLock, IsNotWhatAnAccountedDeviceIsWaitedFor) {
  for (const bool accounted : {false, true}) {
    RunView run = WaitingForEachOther(4, 0.7, true);
    if (accounted) {
      ResourceRow device;
      device.name = "getitem";  // as its operator is called
      device.kind = "device";
      device.servers_count = 1;
      device.hold_ns = static_cast<int64_t>(9e9);
      device.wait_ns = static_cast<int64_t>(28e9);
      run.resources.push_back(device);
    }
    const PipelineModel model(run);
    const Bottleneck bottleneck = FindBottleneck(model);
    const bool found =
        std::any_of(bottleneck.findings.begin(), bottleneck.findings.end(),
                    [](const Finding& finding) { return finding.limit.name == "in getitem"; });
    EXPECT_EQ(found, !accounted);
  }
}

}  // namespace
}  // namespace headrace::analysis
