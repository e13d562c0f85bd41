// What is said of a run at all.
#include "analysis/advice/statements.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/analysis/made_runs.h"

namespace headrace::analysis {
namespace {

using testing::HasSubstr;

// A loader feeds the trainer for the first `share` of twenty seconds, in which it goes on.
RunView FedFor(double share, const std::string& pipeline_path) {
  SimulatedPipeline pipeline;
  pipeline.stages = {{"workers", 2, 4, {{"getitem", 0.0005, 0.004, 0, 0, 0.1, -1}}}};
  pipeline.consumer_s = 0.001;
  RunView run = Record(pipeline, 20, 1);
  run.run.pipeline_path = pipeline_path;
  for (WindowRow& window : run.windows) {
    if (static_cast<double>(window.start_ns) < share * 20e9) continue;
    run.steps.steps_count -= window.steps.steps_count;
    window.steps = {};
  }
  return run;
}

TEST(Statements, ALoaderThatEndedLongBeforeSaysLittleOfTheProgram) {
  const Statements statements = MakeStatements(FedFor(0.3, ""));
  EXPECT_FALSE(statements.bottleneck);
  EXPECT_FALSE(statements.outside) << "its threads' courses were not recorded";
  EXPECT_THAT(statements.withheld, HasSubstr("took no batch in the last 14.0 s of 20.0 s"));
}

// As a program of Ray does, that shuts its processes down.
TEST(Statements, ALoaderIsNoLessWhereTheProgramOnlyEnds) {
  const auto has_verdict = [](double seconds, bool computes, double worker_ended) {
    Received costs;
    costs.wait_s = 0.004;
    costs.step_cpu_s = 0.004;
    RunView run = RecordReceived(costs, seconds, 1);
    for (WindowRow& window : run.windows) {
      if (static_cast<double>(window.start_ns) < 0.4 * seconds * 1e9) continue;
      run.steps.steps_count -= window.steps.steps_count;
      window.steps = {};
      if (computes) continue;
      for (StageCounters& stage : window.stages) stage.on_cpu_ns = 0;
    }
    ProcessRow& worker = run.processes.emplace_back();
    worker.process_id = 2;
    worker.ended_ns = static_cast<int64_t>(worker_ended * 1e9);
    return MakeStatements(run).bottleneck.has_value();
  };
  EXPECT_TRUE(has_verdict(15, false, 10));
  EXPECT_FALSE(has_verdict(15, true, 10));
  EXPECT_FALSE(has_verdict(15, false, 15)) << "it hangs until it is stopped";
  EXPECT_FALSE(has_verdict(30, false, 20)) << "for long";
}

TEST(Statements, OneThatFeedsTheTrainerForLongDoes) {
  for (const double share : {0.7, 1.0}) {
    const Statements statements = MakeStatements(FedFor(share, ""));
    EXPECT_TRUE(statements.bottleneck) << statements.withheld;
    EXPECT_FALSE(statements.outside);
  }
}

TEST(Statements, APipelineOfOurOwnEndsWithItsBatches) {
  EXPECT_TRUE(MakeStatements(FedFor(0.3, "pipeline.toml")).bottleneck);
}

TEST(Statements, AProgramWithoutOneBatchHasNoVerdict) {
  const Statements statements = MakeStatements(FedFor(0, ""));
  EXPECT_FALSE(statements.bottleneck);
  EXPECT_FALSE(statements.outside) << "its threads' courses were not recorded";
  EXPECT_THAT(statements.withheld, HasSubstr("no step was recorded"));
}

// A loader of another kind than the one that is instrumented does the work: its CPU time is in no
// operator, and more cores than it uses would be there.
TEST(Statements, AccountsThatMissTheWorkGiveNoVerdict) {
  Received costs;
  costs.make_cpu_s = 0.0002;
  costs.wait_s = 0.02;
  costs.step_cpu_s = 0.002;
  for (const double elsewhere_s : {0.0, 0.035}) {
    SCOPED_TRACE(elsewhere_s);
    costs.other_cpu_s = elsewhere_s;
    const Statements statements = MakeStatements(RecordReceived(costs, 20, 1));
    ASSERT_TRUE(statements.bottleneck) << statements.withheld;
    const bool missed =
        statements.bottleneck->measure.find("the instrumentation saw") != std::string::npos;
    EXPECT_EQ(missed, elsewhere_s > 0)
        << statements.bottleneck->measure << statements.bottleneck->findings[0].limit.name;
    if (missed) {
      EXPECT_EQ(statements.bottleneck->verdict, Verdict::kUndecided);
      EXPECT_THAT(statements.bottleneck->measure, HasSubstr("--no-hook"));
    }
  }
}

// The trainer's thread waits inside its step for threads that are in no operator. One that sleeps
// there stands for one that computes.
TEST(Statements, AStepThatWaitsForOtherThreadsIsNoLimit) {
  const std::pair<double, const char*> cases[] = {{0.2, "lock"}, {0.8, "sleep"}, {0.8, "lock"}};
  for (const auto& [locked, cause] : cases) {
    SCOPED_TRACE(cause);
    OneThread costs;
    costs.load_cpu_s = 0.00005;
    costs.step_cpu_s = 0.002 * (1 - locked);
    costs.step_blocked_s = 0.002 * locked;
    RunView run = RecordOneThread(costs, 20, 1);
    for (const OperatorRow& op : run.operators) {
      if (op.kind != "consumer") continue;
      MeasurementRow row;
      row.metric = "off_cpu_ns";
      row.operator_name = op.name;
      row.stage = op.stage;
      row.cause = cause;
      row.value = locked * static_cast<double>(op.busy_ns);
      run.measurements.push_back(row);
    }
    const Statements statements = MakeStatements(run);
    ASSERT_TRUE(statements.bottleneck);
    const bool doubted = locked > 0.5 && std::string(cause) == "lock";
    EXPECT_EQ(statements.bottleneck->verdict, doubted ? Verdict::kUndecided : Verdict::kConsumer);
    EXPECT_EQ(statements.bottleneck->measure.find("80 % of its time") != std::string::npos, doubted)
        << statements.bottleneck->measure;
  }
}

}  // namespace
}  // namespace headrace::analysis
