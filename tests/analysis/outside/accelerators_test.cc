// Accelerators beside a run seen from outside: the limit's probability, and ranks each on its own.
#include "tests/analysis/accelerators.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "analysis/outside/outside.h"
#include "analysis/thresholds.h"
#include "tests/analysis/outside_run.h"

namespace headrace::analysis {
namespace {

// Two trainers below a launcher, each with a worker of its own, that wait for it so long. Else they
// compute, or sleep while their devices do.
RunView TwoRanks(double first_stall, double second_stall, bool sleep = false) {
  OutsideRun run;
  run.Process(50, 1, "torchrun", "torchrun train.py");
  run.Blocked(50, "torchrun (main)", "child", 0.99);
  int64_t pid = 100;
  for (const double stall : {first_stall, second_stall}) {
    const int64_t worker = pid + 100;
    run.Process(pid, 50, "python", "python train.py");
    run.Process(worker, pid, "python");
    run.OnCpu(pid, "python (main)", sleep ? 0.01 : 0.97 - stall);
    if (sleep) run.Blocked(pid, "python (main)", "sleep", 0.96 - stall);
    run.OnCpu(worker, "pt_data_worker (main)", 0.9);
    run.Waits(pid, "python (main)", "poll", stall,
              std::to_string(worker) + "/pt_data_worker (main)");
    run.Waits(worker, "pt_data_worker (main)", "poll", 0.08,
              std::to_string(pid) + "/python (main)");
    ++pid;
  }
  return run.view;
}

TEST(OutsideAccelerators, EachRankHasItsOwnWaits) {
  for (const bool sleep : {false, true}) {
    RunView run = TwoRanks(0.8, 0.1, sleep);
    ASSERT_EQ(LookFromOutside(run).kinds[LookFromOutside(run).units[0].kind].pids.size(), 2u);
    AddDevice(&run, "gpu0", 0.15);
    AddDevice(&run, "gpu1", 0.85);
    AddUser(&run, "gpu0", 100);
    AddUser(&run, "gpu1", 101);
    const Outside seen = LookFromOutside(run);
    ASSERT_TRUE(seen.accelerators);
    ASSERT_EQ(seen.accelerators->devices.size(), 2u);
    EXPECT_NEAR(seen.accelerators->devices[0].wait_ratio, 0.8, 0.05);
    EXPECT_NEAR(seen.accelerators->devices[1].wait_ratio, 0.1, 0.05);
    EXPECT_NEAR(seen.accelerators->mean.wait_ratio, seen.stall_ratio, 0.05);
    EXPECT_GT(seen.accelerators->devices[0].idle_waiting.low, 0.55);
    EXPECT_LT(seen.accelerators->devices[1].idle_waiting.high, 0.2);
  }
}

TEST(OutsideAccelerators, BusyDevicesTakeFromALimitInTheLoadingAlone) {
  RunView loading = Loader(2, 0.15, 0.8, 0.95, 0, 0.03).view;
  const double before = LookFromOutside(loading).findings[0].probability;
  AddDevice(&loading, "gpu0", 0.96);
  const Outside seen = LookFromOutside(loading);
  EXPECT_GT(before, kSureOfRow);
  EXPECT_LE(seen.findings[0].probability, kDeviceDisagrees);
  EXPECT_FALSE(seen.decided);
  EXPECT_EQ(seen.measure, MeasureOfDevices(*seen.accelerators));
  RunView training = Loader(4, 0.97, 0.01, 0.1, 0, 0.88).view;
  const double trainer = LookFromOutside(training).findings[0].probability;
  AddDevice(&training, "gpu0", 0.96);
  EXPECT_EQ(LookFromOutside(training).findings[0].limit, OutsideLimit::kConsumer);
  EXPECT_EQ(LookFromOutside(training).findings[0].probability, trainer);
}

TEST(OutsideAccelerators, WhatIsUnseenIsSaidOnce) {
  const auto said = [](const RunView& run) {
    const Outside seen = LookFromOutside(run);
    return std::count_if(seen.unknown.begin(), seen.unknown.end(), [](const std::string& text) {
      return text.find("accelerator") != std::string::npos;
    });
  };
  RunView run = Loader(2, 0.15, 0.8, 0.95, 0, 0.03).view;
  EXPECT_EQ(said(run), 1);
  RunView short_run = OutsideRun(0.6).Process(1, 0, "cat").OnCpu(1, "cat (main)", 0.5).view;
  EXPECT_EQ(said(short_run), 1) << "withheld";
  AddDevice(&run, "gpu0", 0.3);
  EXPECT_EQ(said(run), 0);
}

}  // namespace
}  // namespace headrace::analysis
