// Programs whose workers wait for a lock on a file.
#include "analysis/outside/file_locks.h"

#include <gtest/gtest.h>

#include <string>

#include "analysis/outside/outside.h"
#include "tests/analysis/outside_run.h"

namespace headrace::analysis {
namespace {

// Two workers wait for a process that holds a file's lock while it waits itself for `holder`. In
// `call` they wait, in the innermost function.
Outside BehindALock(const std::string& call, const std::string& holder) {
  OutsideRun run;
  run.Process(100, 1, "python").OnCpu(100, "python (main)", 0.15);
  run.Process(150, 100, "keeper").Blocked(150, "keeper (main)", holder, 0.98);
  for (int64_t pid = 200; pid < 202; ++pid) {
    run.Process(pid, 100, "worker").OnCpu(pid, "worker (main)", 0.03);
    run.Waits(pid, "worker (main)", "lock", 0.87, "150/keeper (main)");
    run.Waits(100, "python (main)", "pipe", 0.41, std::to_string(pid) + "/worker (main)");
    StackRow row;
    row.kind = "off_cpu";
    row.process_id = pid;
    row.thread = "worker";
    row.folded = "worker;[lock];main;read_cache;" + call;
    row.time_ns = 8'700'000'000;
    run.view.stacks.push_back(row);
  }
  return LookFromOutside(run.view);
}

TEST(FileLocks, NamesALockOnAFileThatASleeperHolds) {
  const Outside seen = BehindALock("flock", "sleep");
  EXPECT_EQ(seen.findings[0].limit, OutsideLimit::kLock) << "that it sleeps is not what limits";
  EXPECT_EQ(seen.kinds[seen.units[seen.culprit].kind].name, "worker");
  EXPECT_EQ(BehindALock("__fcntl64_nocancel", "sleep").findings[0].limit, OutsideLimit::kLock);
  EXPECT_EQ(BehindALock("sem_wait", "sleep").findings[0].limit, OutsideLimit::kSleep);
  EXPECT_EQ(BehindALock("_IO_flockfile", "sleep").findings[0].limit, OutsideLimit::kSleep);
}

// It fetches what all of them need.
TEST(FileLocks, NamesWhatTheHolderOfAFilesLockFetches) {
  const Outside seen = BehindALock("flock", "network");
  EXPECT_EQ(seen.findings[0].limit, OutsideLimit::kNetwork);
  EXPECT_EQ(seen.kinds[seen.units[seen.culprit].kind].name, "keeper");
}

// Two workers that sleep in `innermost`.
Outside Asleep(const std::string& innermost, int64_t samples_count = 100) {
  OutsideRun run;
  run.Process(100, 1, "python").OnCpu(100, "python (main)", 0.15);
  for (int64_t pid = 200; pid < 202; ++pid) {
    run.Process(pid, 100, "worker").OnCpu(pid, "worker (main)", 0.03);
    run.Blocked(pid, "worker (main)", "sleep", 0.9);
    run.Waits(100, "python (main)", "pipe", 0.41, std::to_string(pid) + "/worker (main)");
    for (const std::string& frames : {innermost, std::string("[truncated];clock_nanosleep")}) {
      StackRow row;
      row.kind = "off_cpu";
      row.process_id = pid;
      row.thread = "worker";
      row.folded = "worker;[sleep];" + frames;
      row.samples_count = samples_count;
      row.time_ns = 4'000'000'000;
      run.view.stacks.push_back(row);
    }
  }
  return LookFromOutside(run.view);
}

// SQLite sleeps between two looks at the lock that another connection holds.
TEST(FileLocks, NamesALockOnADatabase) {
  const std::string query = "main;pysqlite_connection_execute;sqlite3_step;sqlite3VdbeExec;";
  const Outside seen = Asleep(query + "usleep;clock_nanosleep");
  EXPECT_EQ(seen.findings[0].limit, OutsideLimit::kLock);
  EXPECT_EQ(seen.kinds[seen.units[seen.culprit].kind].name, "worker");
  EXPECT_TRUE(StandsAtADatabase(seen.units[seen.culprit].shares));
  for (const std::string& frames : {std::string("main;time_sleep;clock_nanosleep"),
                                    query + "callback;_PyEval_EvalFrameDefault;clock_nanosleep"}) {
    EXPECT_EQ(Asleep(frames).findings[0].limit, OutsideLimit::kSleep) << frames;
  }
  EXPECT_EQ(Asleep(query + "usleep;clock_nanosleep", 5).findings[0].limit, OutsideLimit::kSleep)
      << "too few";
  EXPECT_FALSE(StandsAtADatabase(BehindALock("flock", "sleep").units[1].shares));
}

// A trainer that asks the database itself.
TEST(FileLocks, OneThreadMayWaitForADatabase) {
  OutsideRun run;
  run.Process(100, 1, "python").OnCpu(100, "python (main)", 0.1);
  run.Blocked(100, "python (main)", "sleep", 0.88);
  StackRow row;
  row.kind = "off_cpu";
  row.process_id = 100;
  row.thread = "python";
  row.folded = "python;[sleep];main;sqlite3_step;usleep;clock_nanosleep";
  row.samples_count = 100;
  row.time_ns = 8'000'000'000;
  run.view.stacks.push_back(row);
  const Outside seen = LookFromOutside(run.view);
  EXPECT_EQ(seen.findings[0].limit, OutsideLimit::kLock);
  EXPECT_TRUE(StandsAtADatabase(seen.units[0].shares));
}

}  // namespace
}  // namespace headrace::analysis
