// What limits where a cause is not seen itself: a quota, tools that receive in turn, threads of a
// run-time that only look like feeders.
#include <gtest/gtest.h>

#include <algorithm>

#include "analysis/outside/outside.h"
#include "analysis/thresholds.h"
#include "tests/analysis/outside_run.h"

namespace headrace::analysis {
namespace {

// Ready to run, with a core idle: something that was not recorded holds the thread back.
TEST(OutsideUnseen, AThreadThatIsReadyBesideAFreeCoreIsHeldBack) {
  for (const double busy_cores : {0.7, 3.6}) {
    OutsideRun run(10, busy_cores);
    run.Process(100, 1, "train").OnCpu(100, "train (main)", 0.5);
    run.Runnable(100, "train (main)", 0.45);
    const Outside seen = LookFromOutside(run.view);
    EXPECT_EQ(seen.IsHeldBack(), busy_cores < 1);
    EXPECT_EQ(seen.findings[0].limit == OutsideLimit::kCores, busy_cores < 1);
  }
}

// A tool that is started for each shard brings it through a pipe: together they receive all the
// time, none of them for long.
TEST(OutsideUnseen, ProcessesThatFollowEachOtherReceiveTogether) {
  for (const bool receive : {true, false}) {
    OutsideRun run(10, 1.2);
    run.Process(100, 1, "train").OnCpu(100, "train (main)", 0.2);
    run.Waits(100, "train (main)", "pipe", 0.8, "201/curl (main)");
    for (int64_t pid = 201; pid < 211; ++pid) {
      run.Process(pid, 100, "curl");
      run.Blocked(pid, "curl (main)", "poll", 0.098);
      run.OnCpu(pid, "curl (main)", 0.002);
      if (receive) run.view.receiving_ns[pid] = 1'000'000'000;
    }
    const Outside seen = LookFromOutside(run.view);
    EXPECT_EQ(seen.findings[0].limit == OutsideLimit::kNetwork, receive);
  }
}

// The virtual machine's own threads sleep and wake up beside any program; those of a program with
// such a name are its own.
TEST(OutsideUnseen, ThreadsOfJavaFeedNobody) {
  for (const bool is_java : {true, false}) {
    OutsideRun run(10, 1.2);
    run.Process(100, 1, "java").OnCpu(100, "java (main)", 0.95);
    run.Blocked(100, "VM Periodic Tas", "sleep", 1);
    run.Waits(100, "java (main)", "lock", 0.05, "100/VM Periodic Tas");
    if (is_java) run.OnCpu(100, "VM Thread", 0.01).Blocked(100, "VM Thread", "lock", 0.99);
    const Outside seen = LookFromOutside(run.view);
    const bool feeds = std::any_of(seen.units.begin(), seen.units.end(), [](const auto& unit) {
      return unit.role == UnitRole::kProducer;
    });
    EXPECT_EQ(feeds, !is_java);
  }
}

// The program stands still meanwhile, at a lock of the virtual machine's.
TEST(OutsideUnseen, GarbageCollectionOfJavaIsTheLimit) {
  const struct {
    const char* what;
    double collects, waits, decodes, fetches;
    const char* ended_by;
    bool is_limit;
  } kCases[] = {
      {"it stops the program", 0.9, 0.9, 0, 0, "100/VM Thread", true},
      {"it runs beside the program", 0.9, 0.1, 0, 0, "100/VM Thread", false},
      {"it hardly runs", 0.1, 0.9, 0, 0, "100/VM Thread", false},
      {"what feeds the consumer computes longer", 0.5, 0.8, 0.95, 0, "100/VM Thread", false},
      {"what feeds the consumer waits for the network", 0.5, 0.9, 0.05, 0.9, "100/feeder", false}};
  for (const auto& test : kCases) {
    SCOPED_TRACE(test.what);
    OutsideRun run(10, 1.9);
    run.Process(100, 1, "java").Blocked(100, "java (main)", "lock", 1);
    run.OnCpu(100, "java", 0.99 - test.waits).Waits(100, "java", "lock", test.waits, test.ended_by);
    run.OnCpu(100, "GC Thread#", test.collects).OnCpu(100, "VM Thread", 0.01);
    run.OnCpu(100, "feeder", test.decodes).Blocked(100, "feeder", "network", test.fetches);
    run.Waits(100, "feeder", "lock", 0.99 - test.decodes - test.fetches, "100/java");
    const Outside seen = LookFromOutside(run.view);
    EXPECT_EQ(seen.findings[0].limit == OutsideLimit::kCollector, test.is_limit);
    if (!test.is_limit) continue;
    EXPECT_EQ(seen.units[seen.culprit].name, "threads GC Thread#");
    EXPECT_LE(seen.findings[0].probability, kCollectsGarbage);
  }
}

}  // namespace
}  // namespace headrace::analysis
