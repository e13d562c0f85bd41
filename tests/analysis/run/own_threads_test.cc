#include "analysis/run/own_threads.h"

#include <gtest/gtest.h>

namespace headrace::analysis {
namespace {

// `op` waits at locks for 10 s in process 3.
RunView RunThatWaits() {
  RunView run;
  OperatorRow op;
  op.name = "getitem";
  op.stage = "workers";
  run.operators.push_back(op);
  MeasurementRow row;
  row.metric = "off_cpu_ns";
  row.cause = "lock";
  row.process_id = 3;
  row.pid = 30;
  row.operator_name = "getitem";
  row.stage = "workers";
  row.value = 10e9;
  run.measurements.push_back(row);
  return run;
}

void AddThread(RunView* run, int64_t process_id, const std::string& thread,
               const std::string& metric, const std::string& cause, double seconds) {
  MeasurementRow row;
  row.metric = metric;
  row.cause = cause;
  row.process_id = process_id;
  row.thread = thread;
  row.value = seconds * 1e9;
  run->measurements.push_back(row);
}

// Thread `by` of process 3 ends waits of its first thread.
void AddWaker(RunView* run, const std::string& by) {
  MeasurementRow row;
  row.metric = "wakeups_count";
  row.cause = "lock";
  row.process_id = 3;
  row.pid = 30;
  row.thread = "worker (main)";
  row.subject = "30/" + by;
  row.value = 100;
  run->measurements.push_back(row);
}

TEST(OwnThreads, WhatAPoolWaitsForIsWhatItsOwnerWaitsFor) {
  RunView run = RunThatWaits();
  AddWaker(&run, "pool");
  AddThread(&run, 3, "pool", "off_cpu_ns", "network", 30);
  AddThread(&run, 3, "pool", "on_cpu_ns", "", 2);
  EXPECT_EQ(CauseInOwnThreads(run, run.operators[0]), "network");
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
                        {"a thread that ends none of its waits", 3, "idle", 30, 2},
                        {"threads that compute", 3, "pool", 30, 40}};
  for (const Case& each : cases) {
    SCOPED_TRACE(each.what);
    RunView run = RunThatWaits();
    AddWaker(&run, "pool");
    AddThread(&run, each.process_id, each.thread, "off_cpu_ns", "network", each.network_s);
    AddThread(&run, each.process_id, each.thread, "on_cpu_ns", "", each.on_cpu_s);
    EXPECT_EQ(CauseInOwnThreads(run, run.operators[0]), "");
  }
}

}  // namespace
}  // namespace headrace::analysis
