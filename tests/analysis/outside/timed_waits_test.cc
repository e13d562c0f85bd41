// Waits with a time limit, again and again: to the kernel sleeps, to Python waits for others.
#include "analysis/outside/timed_waits.h"

#include <gtest/gtest.h>

#include <string>

#include "analysis/outside/outside.h"
#include "tests/analysis/outside_run.h"

namespace headrace::analysis {
namespace {

// A trainer whose main thread is in `at`, and of which `ended` of the time are waits that its own
// thread ends; for `slept` of it the kernel saw sleeps of `sleep_s` each.
Outside WithSleeps(const std::string& at, double ended, double slept, double sleep_s) {
  OutsideRun run(10, 1.2);
  run.Process(100, 1, "python", "python train.py").OnCpu(100, "python (main)", 0.1);
  run.Blocked(100, "python (main)", "sleep", slept);
  run.Blocked(100, "python (main)", "lock", ended);
  run.Add("wakeups_count", 100, "python (main)", "lock", 1, "100/python");
  run.Add("wakeup_wait_ns", 100, "python (main)", "lock", ended, "100/python");
  run.OnCpu(100, "python", 0.02).Blocked(100, "python", "network", 0.97);
  MeasurementRow row;
  row.process_id = row.pid = 100;
  row.thread = "python (main)";
  row.cause = "sleep";
  row.metric = "off_cpu_ns";
  row.value = slept * 10e9;
  run.view.measurements.push_back(row);
  row.metric = "off_cpu_count";
  row.value = slept * 10 / sleep_s;
  run.view.measurements.push_back(row);
  Sample("MainThread", "main (train.py:30, loop 28)" + at, 9, &run.view);
  return LookFromOutside(run.view);
}

const std::string kGet = ";Queue.get (queue.py:180);Condition.wait (threading.py:331)";

TEST(TimedWaits, SlicesOfAWaitForOthersAreOfIt) {
  EXPECT_NEAR(WithSleeps(kGet, 0.1, 0.78, 0.1).stall_ratio, 0.88, 0.03);
}

TEST(TimedWaits, WhatIsNoSliceOfOneStaysASleep) {
  EXPECT_NEAR(WithSleeps(kGet, 0.1, 0.78, 0.005).stall_ratio, 0.1, 0.03)
      << "for the lock of the interpreter";
  const std::string sleeps = ";pace (train.py:9, no loop, sleeps)";
  const std::string paced =
      ";pace (train.py:9, no loop);Event.wait (threading.py:629);Condition.wait (threading.py:331)";
  for (const std::string& at : {sleeps, paced}) {
    EXPECT_NEAR(WithSleeps(at, 0.1, 0.78, 0.1).stall_ratio, 0.1, 0.03) << at;
  }
  EXPECT_NEAR(WithSleeps(kGet, 0.01, 0.87, 0.1).stall_ratio, 0.01, 0.01) << "nobody ends it";
}

}  // namespace
}  // namespace headrace::analysis
