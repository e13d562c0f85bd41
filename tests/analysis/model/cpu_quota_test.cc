// A CPU quota: fewer cores than the machine has, and named as what it is.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "analysis/advice/next_step.h"
#include "analysis/model/bottleneck.h"
#include "analysis/model/limits/bounds.h"
#include "analysis/model/limits/limit_kind.h"
#include "tests/analysis/made_runs.h"

namespace headrace::analysis {
namespace {

using testing::HasSubstr;
using testing::Not;

// One thread that computes, and gets 0.6 of a core on a machine of two.
RunView Throttled() {
  SimulatedPipeline pipeline;
  pipeline.cores = 0.6;
  pipeline.stages = {{"load", 1, 4, {{"load", 0.0005, 0.001, 0, 0, 0.1, -1}}},
                     {"parse", 1, 4, {{"parse", 0.008, 0, 0, 0, 0.1, -1}}}};
  pipeline.consumer_s = 0.001;
  RunView run = Record(pipeline, 20, 3);
  run.run.cores_count = 2;
  run.run.cores_bound_by = "affinity";
  return run;
}

void Measure(const char* metric, const std::string& group, double value, RunView* run) {
  MeasurementRow row;
  row.metric = metric;
  row.subject = group;
  row.value = value;
  run->measurements.push_back(row);
}

void AddQuota(const std::string& group, double cores, double periods, double stopped,
              RunView* run) {
  Measure("cgroup_cpu_quota_cores", group, cores, run);
  Measure("cgroup_periods_count", group, periods, run);
  Measure("cgroup_throttled_count", group, stopped, run);
}

const Limit* CoresRow(const std::vector<Limit>& rows) {
  for (const Limit& row : rows) {
    if (row.Is(kCoresLimit)) return &row;
  }
  return nullptr;
}

TEST(CpuQuota, TheSameButForRoundingTellsHowOftenItStoppedTheRun) {
  RunView run = Throttled();
  run.run.cores_count = 0.6;
  run.run.cores_bound_by = "cgroup quota";
  AddQuota("/job", 0.6000000000000001, 200, 190, &run);  // a mean of many readings
  const auto quota = CpuQuotaOf(run, 0.55);
  ASSERT_TRUE(quota);
  EXPECT_EQ(quota->stopped_ratio, 0.95);
}

TEST(CpuQuota, OfTheControlGroupIsTheNumberOfCores) {
  RunView run = Throttled();
  AddQuota("/job", 0.6000000000000001, 200, 190, &run);
  const PipelineModel model(run);
  EXPECT_DOUBLE_EQ(model.cores_budget(), 0.6);
  ASSERT_TRUE(model.cpu_quota());
  EXPECT_NEAR(model.cpu_quota()->stopped_ratio.value_or(0), 0.95, 1e-9);
  const Bottleneck bottleneck = FindBottleneck(model);
  const Limit& limit = bottleneck.findings[0].limit;
  EXPECT_EQ(limit.kind_name(), kCoresLimit);
  EXPECT_EQ(limit.kind->ShortName(limit), "CPU quota");
  EXPECT_THAT(limit.kind->Because(model, limit, 1), HasSubstr("0.60 cores"));
  EXPECT_THAT(limit.kind->Because(model, limit, 1), HasSubstr("95.0 % of the quota's periods"));
  const NextStep next = NextStepOf(run, MakeStatements(run));
  EXPECT_THAT(next.text, HasSubstr("Raise the CPU quota of 0.60 cores"));
  EXPECT_THAT(next.text, Not(HasSubstr("parse threads")));
}

TEST(CpuQuota, TheLeastOfSeveralGroupsBinds) {
  RunView run = Throttled();
  AddQuota("/", 1.5, 200, 0, &run);
  AddQuota("/job", 0.6, 200, 190, &run);
  EXPECT_DOUBLE_EQ(PipelineModel(run).cores_budget(), 0.6);
}

TEST(CpuQuota, OfAnotherProcessIsNotItsOwn) {
  RunView run = Throttled();
  AddQuota("/helper", 0.1, 200, 190, &run);  // less than what was used
  const PipelineModel model(run);
  EXPECT_FALSE(model.cpu_quota());
  EXPECT_DOUBLE_EQ(model.cores_budget(), 2);
}

TEST(CpuQuota, OfSeveralContainersAddUp) {
  RunView run = Throttled();
  AddQuota("/a", 0.7, 200, 190, &run);
  AddQuota("/b", 0.7, 200, 190, &run);
  const PipelineModel model(run);
  EXPECT_FALSE(model.cpu_quota());
  EXPECT_DOUBLE_EQ(model.cores_budget(), 2);
}

TEST(CpuQuota, IsStoppedByItsOwnPeriods) {
  RunView run = Throttled();
  AddQuota("/helper", 0.1, 200, 190, &run);
  AddQuota("/job", 1.5, 200, 4, &run);
  const PipelineModel model(run);
  ASSERT_TRUE(model.cpu_quota());
  EXPECT_NEAR(model.cpu_quota()->stopped_ratio.value_or(0), 0.02, 1e-9);
}

TEST(CpuQuota, LargerThanTheMachineBindsNothing) {
  RunView run = Throttled();
  AddQuota("/job", 8, 200, 0, &run);
  const PipelineModel model(run);
  EXPECT_FALSE(model.cpu_quota());
  const std::vector<Limit> rows = Bounds(model, model.demands(), model.current());
  const Limit* row = CoresRow(rows);
  ASSERT_NE(row, nullptr);
  EXPECT_EQ(row->kind->ShortName(*row), "CPU cores");
}

TEST(CpuQuota, OfTheEnvironmentAloneIsNamedToo) {
  RunView run = Throttled();
  run.run.cores_count = 0.6;
  run.run.cores_bound_by = "cgroup quota";
  const PipelineModel model(run);
  ASSERT_TRUE(model.cpu_quota());
  EXPECT_FALSE(model.cpu_quota()->stopped_ratio) << "how often it stopped nobody counted";
}

}  // namespace
}  // namespace headrace::analysis
