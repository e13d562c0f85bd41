// What instrumentation shows to limit, beside what threads show by themselves.
#include "analysis/advice/second_view.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "analysis/advice/statements.h"
#include "analysis/outside/python_places.h"
#include "tests/analysis/made_runs.h"
#include "tests/analysis/outside_run.h"

namespace headrace::analysis {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;

RunView WithThreads(RunView run, const RunView& threads) {
  run.processes = threads.processes;
  run.course = threads.course;
  run.course_slice_ns = threads.course_slice_ns;
  run.hosts = threads.hosts;
  run.metrics = threads.metrics;
  run.stacks = threads.stacks;
  run.run.duration_ns = threads.run.duration_ns;
  return run;
}

// Two workers make 5 ms batches, which the trainer takes in 1.8 ms, waiting 28 % of its time; with
// the threads of another recording.
RunView LimitedByWorkers(const OutsideRun& threads) {
  Received costs;
  costs.make_cpu_s = 0.005;
  costs.cores = 4;
  costs.wait_s = 0.0007;
  costs.step_cpu_s = 0.0017;
  return WithThreads(RecordReceived(costs, 10, 1), threads.view);
}

const Finding& FirstOf(const Statements& statements) {
  return statements.bottleneck->findings.at(0);
}

TEST(SecondView, WhatBothShowIsAsSureAsAProgramOfOthersCanBe) {
  const RunView run = LimitedByWorkers(Loader(2, 0.7, 0.28, 0.95, 0, 0.02));
  const Statements statements = MakeStatements(run);
  ASSERT_TRUE(statements.bottleneck) << statements.withheld;
  EXPECT_TRUE(FirstOf(statements).limit.Is(kStageLimit)) << FirstOf(statements).limit.name;
  EXPECT_DOUBLE_EQ(FirstOf(statements).probability, kMostOfOthersPrograms);
  EXPECT_THAT(statements.bottleneck->disagreement, IsEmpty());
}

// By their threads the workers wait for the trainer as long as they work.
TEST(SecondView, WhatThreadsContradictIsNotSure) {
  const RunView run = LimitedByWorkers(Loader(2, 0.84, 0.15, 0.2, 0, 0.78));
  const Statements statements = MakeStatements(run);
  ASSERT_TRUE(statements.bottleneck) << statements.withheld;
  EXPECT_TRUE(FirstOf(statements).limit.Is(kStageLimit)) << FirstOf(statements).limit.name;
  EXPECT_LE(FirstOf(statements).probability, kViewsDisagree);
  EXPECT_THAT(statements.bottleneck->disagreement,
              HasSubstr("seen from outside, the limit would be"));
}

TEST(SecondView, APipelineOfOurOwnIsNotAsked) {
  RunView run = LimitedByWorkers(Loader(2, 0.84, 0.15, 0.2, 0, 0.78));
  run.run.pipeline_path = "pipeline.toml";
  const Statements statements = MakeStatements(run);
  ASSERT_TRUE(statements.bottleneck) << statements.withheld;
  EXPECT_GT(FirstOf(statements).probability, kMostOfOthersPrograms);
  EXPECT_THAT(statements.bottleneck->disagreement, IsEmpty());
}

// Threads of tf.data that call Python wait for its interpreter: more of them hardly help.
TEST(SecondView, SeveralThreadsOfTfDataInPythonAreNotSurelyTheLimit) {
  OutsideRun threads(10, 1.1);
  threads.Process(100, 1, "python", "python train.py").OnCpu(100, "python (main)", 0.3);
  threads.Blocked(100, "python (main)", "sleep", 0.4);
  threads.Waits(100, "python (main)", "lock", 0.28, "100/python");
  threads.OnCpu(100, "python", 0.75).Blocked(100, "python", "sleep", 0.7);
  threads.Waits(100, "python", "lock", 0.5, "100/python (main)");
  ASSERT_EQ(LookFromOutside(threads.view).findings[0].limit, OutsideLimit::kInterpreter);
  for (const std::string stage : {"workers", "tf.data map"}) {
    SCOPED_TRACE(stage);
    RunView run = LimitedByWorkers(threads);
    for (StageRow& row : run.stages) {
      if (row.name == "workers") row.name = stage;
    }
    for (OperatorRow& row : run.operators) {
      if (row.stage == "workers") row.stage = stage;
    }
    const Statements statements = MakeStatements(run);
    ASSERT_TRUE(statements.bottleneck) << statements.withheld;
    EXPECT_EQ(statements.bottleneck->disagreement.empty(), stage == "workers");
  }
}

// Where its step and its loading are half and half by its functions, its threads decide nothing.
TEST(SecondView, WhatThreadsLeaveUndecidedIsLessSure) {
  OneThread costs;
  costs.load_cpu_s = 0.0022;
  costs.step_cpu_s = 0.002;
  const RunView run = WithThreads(RecordOneThread(costs, 10, 1),
                                  WithStacks(Loader(2, 0.93, 0.05, 0.1, 0, 0.88), 4.7, 4.7, 0.5));
  ASSERT_FALSE(LookFromOutside(run).decided);
  const Statements statements = MakeStatements(run);
  ASSERT_TRUE(statements.bottleneck) << statements.withheld;
  EXPECT_TRUE(FirstOf(statements).limit.Is(kThreadLimit)) << FirstOf(statements).limit.name;
  EXPECT_DOUBLE_EQ(FirstOf(statements).probability, kThreadsUndecided);
  EXPECT_THAT(statements.bottleneck->disagreement, IsEmpty());
}

// What is called the step of a Python program may be validation or saving: its functions tell. A
// program in another language has none to be seen.
TEST(SecondView, AStepOfPythonThatNobodySawIsLessSure) {
  const std::string main = "<module> (train.py:40, no loop);main (train.py:30, loop 28)";
  const struct {
    const char* process;
    double seen_s;
    double most;
  } kCases[] = {{"python3", 0, kStepUnseen},
                {"python3", 9, kTrainersStep},
                {"trainer", 0, kMostOfOthersPrograms}};
  for (const auto& each : kCases) {
    SCOPED_TRACE(testing::Message() << each.process << ", seen for " << each.seen_s << " s");
    RunView run = RecordOneThread({.load_cpu_s = 0.00005, .step_cpu_s = 0.01}, 10, 3);
    MeasurementRow took;
    took.metric = "rank_steps_count";
    took.process = each.process;
    took.process_id = 100;
    took.value = 1000;
    run.measurements.push_back(took);
    if (each.seen_s > 0) {
      Sample("MainThread", main + ";Tensor.backward (torch/_tensor.py:623)", each.seen_s, &run);
    }
    const Statements statements = MakeStatements(run);
    ASSERT_TRUE(statements.bottleneck) << statements.withheld;
    EXPECT_TRUE(FirstOf(statements).limit.Is(kConsumerLimit)) << FirstOf(statements).limit.name;
    EXPECT_DOUBLE_EQ(FirstOf(statements).probability, each.most);
    EXPECT_EQ(statements.bottleneck->disagreement.empty(), each.most != kStepUnseen);
  }
}

// Without causes of waits they never decide anything.
TEST(SecondView, TimesOnTheCpuAloneAreNotAsked) {
  RunView run = LimitedByWorkers(Loader(2, 0.84, 0.15, 0.2, 0, 0.78));
  std::erase_if(run.course, [](const auto& row) { return row.metric != "on_cpu_ns"; });
  const Statements statements = MakeStatements(run);
  ASSERT_TRUE(statements.bottleneck) << statements.withheld;
  EXPECT_DOUBLE_EQ(FirstOf(statements).probability, kMostOfOthersPrograms);
}

// Threads that are not the same trainer's say nothing of its limit.
TEST(SecondView, AnotherTrainerThanTheAccountsOneIsNotAsked) {
  const RunView run = LimitedByWorkers(Loader(2, 0.97, 0.02, 0.2, 0, 0.78));
  const Statements statements = MakeStatements(run);
  ASSERT_TRUE(statements.bottleneck) << statements.withheld;
  EXPECT_DOUBLE_EQ(FirstOf(statements).probability, kMostOfOthersPrograms);
  EXPECT_THAT(statements.bottleneck->disagreement, IsEmpty());
}

// What a generator of the program makes of a loader's rows is in no operator: it is the trainer's.
TEST(SecondView, LoadingAroundTheLoaderIsNoStep) {
  const std::string main = "<module> (train.py:40, no loop);main (train.py:30, loop 28";
  for (const bool in_generator : {true, false}) {
    RunView run = RecordOneThread({.load_cpu_s = 0.00005, .step_cpu_s = 0.01}, 10, 3);
    OutsideRun threads;
    threads.Process(100, 1, "python3").OnCpu(100, "python3 (main)", 0.98);
    run = WithThreads(run, threads.view);
    MeasurementRow took;
    took.metric = "rank_steps_count";
    took.process = "python3";
    took.process_id = 100;
    took.value = 1000;
    run.measurements.push_back(took);
    Sample("MainThread",
           in_generator ? main + ", next);day_by_day (train.py:12, loop 10)"
                        : main + ");Linear.forward (torch/nn/modules/linear.py:125)",
           8, &run);
    Sample("MainThread", main + ");Tensor.backward (torch/_tensor.py:623)", 2, &run);
    const std::optional<BesideTraining> beside = BesideTrainingByFunctions(run);
    ASSERT_EQ(beside && beside->IsMostlyLoading(), in_generator);
    const Statements statements = MakeStatements(run);
    ASSERT_TRUE(statements.bottleneck) << statements.withheld;
    EXPECT_TRUE(FirstOf(statements).limit.Is(kConsumerLimit)) << FirstOf(statements).limit.name;
    EXPECT_THAT(statements.bottleneck->disagreement, IsEmpty()) << "the page says that it loads";
    if (!in_generator) continue;
    EXPECT_NEAR(beside->place.ratio, 0.8, 0.01);
    EXPECT_EQ(beside->place.name, "day_by_day (train.py:12)");
  }
}

}  // namespace
}  // namespace headrace::analysis
