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

}  // namespace
}  // namespace headrace::analysis
