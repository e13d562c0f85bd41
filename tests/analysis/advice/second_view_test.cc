// What instrumentation shows to limit, beside what threads show by themselves.
#include "analysis/advice/second_view.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "analysis/advice/statements.h"
#include "tests/analysis/made_runs.h"
#include "tests/analysis/outside_run.h"

namespace headrace::analysis {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;

// Two workers make 5 ms batches, which the trainer takes in 1.8 ms, waiting 28 % of its time; with
// the threads of another recording.
RunView LimitedByWorkers(const OutsideRun& threads) {
  Received costs;
  costs.make_cpu_s = 0.005;
  costs.cores = 4;
  costs.wait_s = 0.0007;
  costs.step_cpu_s = 0.0017;
  RunView run = RecordReceived(costs, 10, 1);
  run.processes = threads.view.processes;
  run.course = threads.view.course;
  run.course_slice_ns = threads.view.course_slice_ns;
  run.hosts = threads.view.hosts;
  run.metrics = threads.view.metrics;
  run.run.duration_ns = threads.view.run.duration_ns;
  return run;
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

// Threads that are not the same trainer's say nothing of its limit.
TEST(SecondView, AnotherTrainerThanTheAccountsOneIsNotAsked) {
  const RunView run = LimitedByWorkers(Loader(2, 0.1, 0.9, 0.95, 0, 0.02));
  const Statements statements = MakeStatements(run);
  ASSERT_TRUE(statements.bottleneck) << statements.withheld;
  EXPECT_DOUBLE_EQ(FirstOf(statements).probability, kMostOfOthersPrograms);
  EXPECT_THAT(statements.bottleneck->disagreement, IsEmpty());
}

}  // namespace
}  // namespace headrace::analysis
