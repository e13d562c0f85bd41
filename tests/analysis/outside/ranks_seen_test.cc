// Ranks recorded together from outside: what limits the job limits the slowest of them.
#include "analysis/outside/ranks_seen.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <utility>

#include "analysis/outside/outside.h"
#include "tests/analysis/outside_run.h"

namespace headrace::analysis {
namespace {

// Two ranks of torchrun, of which each waits so long for the other by Gloo's threads; the rest it
// computes.
OutsideRun RanksThatWait(double first_waits, double second_waits) {
  OutsideRun run(10, 1.6);
  run.Process(1, 0, "pt_elastic", "torchrun train.py");
  run.Blocked(1, "pt_elastic (main)", "sleep", 0.98).OnCpu(1, "pt_elastic (main)", 0.02);
  for (const auto& [pid, waits] :
       {std::pair<int64_t, double>{100, first_waits}, {101, second_waits}}) {
    const std::string id = std::to_string(pid);
    run.Process(pid, 1, "python", "python train.py");
    run.OnCpu(pid, "python (main)", 1 - waits);
    run.Waits(pid, "python (main)", "lock", waits, id + "/pt_gloo_runloop");
    run.Waits(pid, "pt_gloo_runloop", "lock", 0.9, id + "/gloo_tcp_loop");
    run.Blocked(pid, "gloo_tcp_loop", "network", 0.95).OnCpu(pid, "gloo_tcp_loop", 0.02);
  }
  return run;
}

TEST(RanksSeen, TheOneThatWaitsLeastHoldsUpTheOthers) {
  const auto ranks = FindRanks(RanksThatWait(0.6, 0.05).view);
  ASSERT_TRUE(ranks);
  EXPECT_EQ(ranks->seen.ranks, 2u);
  EXPECT_EQ(ranks->seen.pid, 101);
  EXPECT_TRUE(ranks->seen.is_slowest);
  EXPECT_NEAR(ranks->seen.others_wait_ratio, 0.6, 0.03);

  const auto alike = FindRanks(RanksThatWait(0.2, 0.21).view);
  ASSERT_TRUE(alike);
  EXPECT_FALSE(alike->seen.is_slowest);
}

// What a rank does before the first exchange, importing, is no part of its training.
TEST(RanksSeen, WaitsAreOfTheTimeFromTheFirstExchangeOn) {
  RunView view = RanksThatWait(0.4, 0.41).view;
  int64_t last = 0;
  for (const CourseRow& row : view.course) last = std::max(last, row.slice);
  for (CourseRow& row : view.course) {
    if (row.slice > last / 2 || (row.process_id != 100 && row.process_id != 101)) continue;
    if (row.metric == "wakeup_wait_ns") row.value = 0;
  }
  // The first is for the rank that loads longest, and is booked where it ends.
  for (CourseRow& row : view.course) {
    if (row.slice == last / 2 + 1 && row.process_id == 100 && row.metric == "wakeup_wait_ns") {
      row.value = 5e9;
    }
  }
  std::erase_if(view.course, [](const CourseRow& row) { return row.value == 0; });
  const auto ranks = FindRanks(view);
  ASSERT_TRUE(ranks);
  EXPECT_NEAR(ranks->seen.wait_ratio, 0.4, 0.03);
}

TEST(RanksSeen, ItsOwnWorkIsTheLimitAndNotTheExchange) {
  RunView view = RanksThatWait(0.6, 0.05).view;
  StackRow row;
  row.kind = "python";
  row.process_id = 101;
  row.thread = "MainThread";
  row.folded =
      "MainThread;main (train.py:30, loop 28, next);_BaseDataLoaderIter.__next__ "
      "(torch/utils/data/dataloader.py:725);fetch (torch/utils/data/_utils/fetch.py:52);"
      "Pictures.__getitem__ (train.py:9, no loop)";
  row.samples_count = 90;
  row.time_ns = 9'000'000'000;
  view.stacks.push_back(row);
  const Outside seen = LookFromOutside(view);
  ASSERT_TRUE(seen.rank);
  EXPECT_EQ(seen.rank->pid, 101);
  EXPECT_EQ(seen.findings[0].limit, OutsideLimit::kOwnWork);
  EXPECT_EQ(seen.python->operator_name, "getitem");
  // What the other rank computes is no other program's.
  EXPECT_NEAR(seen.cores_others.value_or(9), 1.6 - 1.41, 0.1);
}

// Lightning's first rank starts the others.
TEST(RanksSeen, ARankMayBeAnothersParent) {
  RunView view = RanksThatWait(0.6, 0.05).view;
  for (ProcessRow& process : view.processes) {
    if (process.pid == 101) process.parent_pid = 100;
  }
  const Outside seen = LookFromOutside(view);
  ASSERT_TRUE(seen.rank);
  EXPECT_EQ(seen.rank->pid, 101);
  EXPECT_EQ(seen.withheld, "");
}

// NCCL's ranks spin until all have come: none is seen to wait, and none is known to be slow.
TEST(RanksSeen, RanksWithoutWaitsAreNotToldApart) {
  EXPECT_FALSE(FindRanks(RanksThatWait(0.001, 0.001).view));
}

// NCCL's ranks show no waits, but accounts may tell which of them is slow.
TEST(RanksSeen, AKnownRankIsLookedAtAlone) {
  OutsideRun run(10, 3.6);
  run.Process(100, 1, "python", "python train.py").OnCpu(100, "python (main)", 0.99);
  run.Process(101, 100, "python", "python train.py").OnCpu(101, "python (main)", 0.1);
  for (const int64_t worker : {200, 201}) {
    run.Process(worker, 101, "python");
    run.OnCpu(worker, "pt_data_worker (main)", 0.97);
    run.Waits(worker, "pt_data_worker (main)", "poll", 0.02, "101/python (main)");
    run.Waits(101, "python (main)", "poll", 0.44,
              std::to_string(worker) + "/pt_data_worker (main)");
  }
  RankSeen rank;
  rank.ranks = 2;
  rank.pid = 101;
  rank.is_slowest = true;
  const Outside seen = LookAtRank(run.view, {100, 101}, rank);
  ASSERT_TRUE(seen.rank);
  EXPECT_TRUE(seen.decided);
  EXPECT_EQ(seen.findings[0].limit, OutsideLimit::kProducers);
  EXPECT_EQ(seen.kinds[seen.units[seen.culprit].kind].pids, (std::vector<int64_t>{200, 201}));
  EXPECT_NEAR(seen.cores_others.value_or(9), 3.6 - 0.99 - 0.1 - 2 * 0.97, 0.1);
}

TEST(RanksSeen, OneProcessThatExchangesIsNoJob) {
  OutsideRun run(10, 1);
  run.Process(100, 1, "python", "python train.py").OnCpu(100, "python (main)", 0.9);
  run.Waits(100, "python (main)", "lock", 0.1, "100/pt_gloo_runloop");
  run.OnCpu(100, "pt_gloo_runloop", 0.1);
  EXPECT_FALSE(FindRanks(run.view));
  EXPECT_FALSE(FindRanks(Loader(2, 0.9, 0.05, 0.1, 0, 0.88).view));
}

}  // namespace
}  // namespace headrace::analysis
