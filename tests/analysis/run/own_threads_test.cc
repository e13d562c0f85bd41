#include "analysis/run/own_threads.h"

#include <gtest/gtest.h>

namespace headrace::analysis {
namespace {

MeasurementRow& AddRow(RunView* run, int64_t process_id, const std::string& metric,
                       const std::string& cause, double value) {
  MeasurementRow row;
  row.metric = metric;
  row.cause = cause;
  row.process_id = process_id;
  row.pid = 10 * process_id;
  row.value = value;
  run->measurements.push_back(row);
  return run->measurements.back();
}

// An operator that waits at locks for 10 s in process 3, and there a thread "pool" that ends waits
// of the first thread.
RunView RunThatWaits() {
  RunView run;
  OperatorRow op;
  op.name = "getitem";
  op.stage = "workers";
  run.operators.push_back(op);
  MeasurementRow& waits = AddRow(&run, 3, "off_cpu_ns", "lock", 10e9);
  waits.operator_name = op.name;
  waits.stage = op.stage;
  MeasurementRow& wakeups = AddRow(&run, 3, "wakeups_count", "lock", 100);
  wakeups.thread = "worker (main)";
  wakeups.subject = "30/pool";
  return run;
}

void AddThread(RunView* run, int64_t process_id, const std::string& thread, double network_s,
               double on_cpu_s) {
  AddRow(run, process_id, "off_cpu_ns", "network", network_s * 1e9).thread = thread;
  AddRow(run, process_id, "on_cpu_ns", "", on_cpu_s * 1e9).thread = thread;
}

TEST(OwnThreads, WhatAPoolWaitsForIsWhatItsOwnerWaitsFor) {
  RunView run = RunThatWaits();
  AddThread(&run, 3, "pool", 30, 2);
  EXPECT_EQ(CauseInOwnThreads(run, run.operators[0]), "network");
}

// A wait with a time limit of a second, again and again, for a loop of events that receives.
TEST(OwnThreads, AWaitThatEndsByItsTimeLimitIsForThemToo) {
  for (const bool receives : {true, false}) {
    RunView run = RunThatWaits();
    run.run.duration_ns = 20'000'000'000;
    run.measurements[0].value = 2e9;
    MeasurementRow& sleeps = AddRow(&run, 3, "off_cpu_ns", "sleep", 8e9);
    sleeps.operator_name = "getitem";
    sleeps.stage = "workers";
    AddRow(&run, 3, "off_cpu_ns", "poll", 12e9).thread = "pool";
    AddRow(&run, 3, "off_cpu_ns", "lock", 60e9).thread = "pool";  // idle ones
    if (receives) run.receiving_ns[3] = 15'000'000'000;
    EXPECT_EQ(CauseInOwnThreads(run, run.operators[0]), receives ? "network" : "");
  }
}

TEST(OwnThreads, AProcessReceivesForMostOfTheTimeThatItIsThere) {
  RunView run;
  run.run.duration_ns = 20'000'000'000;
  EXPECT_FALSE(ReceivesAllTheTime(run, 3));
  run.receiving_ns[3] = 8'000'000'000;
  EXPECT_FALSE(ReceivesAllTheTime(run, 3)) << "of which nothing else is known";
  ProcessRow& process = run.processes.emplace_back();
  process.process_id = 3;
  process.started_ns = 6'000'000'000;
  EXPECT_TRUE(ReceivesAllTheTime(run, 3));
  process.started_ns = -5'000'000'000;
  EXPECT_FALSE(ReceivesAllTheTime(run, 3)) << "there before the run";
  process.ended_ns = 12'000'000'000;
  EXPECT_TRUE(ReceivesAllTheTime(run, 3));
  process.ended_ns = -1;
  EXPECT_FALSE(ReceivesAllTheTime(run, 3)) << "gone before the run";
}

TEST(OwnThreads, WithoutSuchThreadsALockIsALock) {
  struct Case {
    const char* what;
    int64_t process_id;
    const char* thread;
    double network_s, on_cpu_s;
  };
  const Case cases[] = {{"no thread", 3, "pool", 0, 0},
                        {"another process", 4, "pool", 30, 2},
                        {"the first thread", 3, "worker (main)", 30, 2},
                        {"too short a wait", 3, "pool", 7, 2},
                        {"a thread that ends none of its waits", 3, "idle", 30, 2}};
  for (const Case& each : cases) {
    SCOPED_TRACE(each.what);
    RunView run = RunThatWaits();
    AddThread(&run, each.process_id, each.thread, each.network_s, each.on_cpu_s);
    EXPECT_EQ(CauseInOwnThreads(run, run.operators[0]), "");
  }
}

// A library's own threads, such as those of a data frame.
TEST(OwnThreads, ThreadsThatComputeAreWhatItWaitsFor) {
  const auto cause = [](double network_s, double on_cpu_s, double other_wakeups) {
    RunView run = RunThatWaits();
    AddThread(&run, 3, "pool", network_s, on_cpu_s);
    AddRow(&run, 3, "off_cpu_ns", "lock", 60e9).thread = "pool";  // those with nothing to do
    MeasurementRow& wakeups = AddRow(&run, 3, "wakeups_count", "lock", other_wakeups);
    wakeups.thread = "worker (main)";
    wakeups.subject = "30/other";
    return CauseInOwnThreads(run, run.operators[0]);
  };
  EXPECT_EQ(cause(0, 9, 0), "cpu");
  EXPECT_EQ(cause(30, 40, 0), "cpu");
  EXPECT_EQ(cause(0, 7, 0), "") << "too short";
  EXPECT_EQ(cause(0, 9, 1000), "") << "another ends its waits";
}

// Ray's run-time polls its sockets in every process, and ends a wait of the first thread now and
// then.
TEST(OwnThreads, OneThatPollsBesideThemIsNotWhatItWaitsFor) {
  const auto cause = [](double wakeups_count) {
    RunView run = RunThatWaits();
    run.run.duration_ns = 20'000'000'000;
    run.receiving_ns[3] = 15'000'000'000;
    AddThread(&run, 3, "pool", 0, 9);
    AddRow(&run, 3, "off_cpu_ns", "poll", 19e9).thread = "client.poll";
    MeasurementRow& wakeups = AddRow(&run, 3, "wakeups_count", "lock", wakeups_count);
    wakeups.thread = "worker (main)";
    wakeups.subject = "30/client.poll";
    return CauseInOwnThreads(run, run.operators[0]);
  };
  EXPECT_EQ(cause(3), "cpu");
  EXPECT_EQ(cause(300), "network");
}

// A limiter of requests sleeps in a thread of its own.
TEST(OwnThreads, OnesThatSleepForAsLongAreWhatItWaitsFor) {
  const auto cause = [](double sleep_s, double sleeps, double other_wakeups = 0) {
    RunView run = RunThatWaits();
    AddThread(&run, 3, "pool", 0, 0.5);
    AddRow(&run, 3, "off_cpu_ns", "lock", 60e9).thread = "pool";  // those with nothing to do
    AddRow(&run, 3, "off_cpu_ns", "sleep", sleep_s * 1e9).thread = "pool";
    AddRow(&run, 3, "off_cpu_count", "sleep", sleeps).thread = "pool";
    MeasurementRow& wakeups = AddRow(&run, 3, "wakeups_count", "lock", other_wakeups);
    wakeups.thread = "worker (main)";
    wakeups.subject = "30/other";
    return CauseInOwnThreads(run, run.operators[0]);
  };
  EXPECT_EQ(cause(9.5, 200), "sleep");
  EXPECT_EQ(cause(9.5, 2), "") << "it looks after the others";
  EXPECT_EQ(cause(9.5, 200, 1000), "") << "another ends its waits";
  EXPECT_EQ(cause(5, 200), "") << "too short";
  EXPECT_EQ(cause(40, 200), "") << "several that sleep anyway";
}

}  // namespace
}  // namespace headrace::analysis
