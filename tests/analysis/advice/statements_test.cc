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

}  // namespace
}  // namespace headrace::analysis
