#include "collectors/recorder_cost.h"

#include <gtest/gtest.h>

#include "base/instrumentation_cost.h"

namespace headrace::collectors {
namespace {

OperatorSample Counted(const char* kind, int64_t stage, int64_t enters, int64_t completions) {
  OperatorSample op;
  op.kind = kind;
  op.stage_id = stage;
  op.enters = enters;
  op.completions = completions;
  return op;
}

StageSample Stage(int64_t id, const char* name) {
  StageSample stage;
  stage.id = id;
  stage.name = name;
  return stage;
}

TEST(AccountsCost, AVisitOrAHookedBatchEachHasItsCost) {
  AccountsCost visits;
  IntervalSample sample;
  sample.stages = {Stage(1, "reader")};
  sample.operators = {Counted("decode", 1, 1000, 1000), Counted("receive", 1, 500, 500)};
  visits.Add(sample);
  visits.Add(sample);
  EXPECT_DOUBLE_EQ(visits.CpuNs(), 3000 * kVisitNs) << "no DataLoader's trainer receives there";

  AccountsCost batches;
  sample.stages.push_back(Stage(2, "receiver"));
  sample.operators = {Counted("fetch", 1, 400, 400), Counted("receive", 2, 100, 100)};
  batches.Add(sample);
  sample.stages.clear();  // told once
  batches.Add(sample);
  EXPECT_DOUBLE_EQ(batches.CpuNs(), 200 * kHookedBatchNs);
}

// The guard takes differences: a DataLoader that comes later takes nothing back.
TEST(AccountsCost, NeverGetsLess) {
  AccountsCost cost;
  IntervalSample sample;
  sample.stages = {Stage(1, "reader"), Stage(2, "receiver")};
  sample.operators = {Counted("decode", 1, 10'000'000, 1)};
  cost.Add(sample);
  const double before = cost.CpuNs();
  sample.operators = {Counted("receive", 2, 1, 1)};
  cost.Add(sample);
  EXPECT_GE(cost.CpuNs(), before);
}

}  // namespace
}  // namespace headrace::collectors
