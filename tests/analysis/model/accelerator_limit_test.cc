// A trainer that queues work for its device and asks for the next batch meanwhile: the device
// bounds what faster loading gains, and may be the limit although the trainer's thread waits.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "analysis/advice/next_step.h"
#include "analysis/advice/statements.h"
#include "analysis/thresholds.h"
#include "tests/analysis/accelerators.h"
#include "tests/analysis/made_runs.h"

namespace headrace::analysis {
namespace {

// Each worker makes a batch in 14 ms; the trainer's thread takes 1 ms for it, and the device is
// busy for `busy` of the time.
RunView RecordQueueing(double busy, bool known_user = true, int workers = 1) {
  Received costs;
  costs.workers = workers;
  costs.make_cpu_s = 0.014;
  costs.make_blocked_s = 0;
  costs.step_cpu_s = 0.001;
  costs.wait_s = 0.013;
  costs.epochs = 0;
  costs.cores = 16;
  RunView run = RecordReceived(costs, 20, 1);
  run.run.pipeline_path.clear();
  AddDevice(&run, "gpu0", busy);
  if (known_user) AddUser(&run, "gpu0", 100);
  return run;
}

TEST(AcceleratorLimit, BoundsWhatMoreWorkersGain) {
  const Statements statements = MakeStatements(RecordQueueing(0.54));
  ASSERT_TRUE(statements.bottleneck);
  EXPECT_EQ(statements.bottleneck->findings[0].limit.kind_name(), kStageLimit);
  ASSERT_TRUE(statements.allocation);
  // 1 / 0.54 of the rate; an H200 gave 1.51 where it was busy 54 % of the time.
  EXPECT_NEAR(statements.allocation->predicted / statements.allocation->now - 1, 0.85, 0.06);
  EXPECT_LT(statements.allocation->gain_interval.low, 0.51);
  EXPECT_LT(statements.allocation->gain_interval.high, 2);
  EXPECT_TRUE(statements.allocation->limited_by.Is(kAcceleratorLimit));
  EXPECT_GT(JobStall(statements), 0.8);
}

TEST(AcceleratorLimit, IsNamedWhereTheDeviceIsBusyAllTheTime) {
  const Statements statements = MakeStatements(RecordQueueing(0.98, true, 3));
  ASSERT_TRUE(statements.bottleneck);
  EXPECT_TRUE(statements.bottleneck->findings[0].limit.Is(kAcceleratorLimit));
  EXPECT_EQ(statements.bottleneck->verdict, Verdict::kConsumer);
  EXPECT_TRUE(DevicesLimit(statements));
  EXPECT_LT(JobStall(statements), kSmallStall);
}

TEST(AcceleratorLimit, IsNotSureWhereOthersMayUseTheDevice) {
  const Statements statements = MakeStatements(RecordQueueing(0.98, false, 3));
  ASSERT_TRUE(statements.bottleneck);
  EXPECT_EQ(statements.bottleneck->verdict, Verdict::kUndecided);
  EXPECT_FALSE(DevicesLimit(statements));
}

// Where time is lost that nobody recorded, a device that is half idle has the smallest bound. It is
// no reason for the rate.
TEST(AcceleratorLimit, ADeviceThatIdlesIsNoVerdict) {
  RunView run = RecordQueueing(0.6, true, 8);
  const Statements statements = MakeStatements(run);
  ASSERT_TRUE(statements.bottleneck);
  EXPECT_EQ(statements.bottleneck->verdict, Verdict::kUndecided);
  EXPECT_FALSE(DevicesLimit(statements));
}

TEST(AcceleratorLimit, SeveralDevicesMayWaitForEachOther) {
  RunView run = RecordQueueing(0.98, true, 3);
  AddDevice(&run, "gpu1", 0.98);
  AddUser(&run, "gpu1", 100);
  const Statements statements = MakeStatements(run);
  ASSERT_TRUE(statements.bottleneck);
  for (const Finding& finding : statements.bottleneck->findings) {
    EXPECT_FALSE(finding.limit.Is(kAcceleratorLimit));
  }
}

TEST(AcceleratorLimit, IsNoneWhereTheDeviceHardlyRuns) {
  for (const double busy : {0.0, 0.005}) {
    const Statements statements = MakeStatements(RecordQueueing(busy));
    ASSERT_TRUE(statements.bottleneck);
    for (const Finding& finding : statements.bottleneck->findings) {
      EXPECT_FALSE(finding.limit.Is(kAcceleratorLimit)) << busy;
    }
  }
}

}  // namespace
}  // namespace headrace::analysis
