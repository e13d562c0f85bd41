#include "analysis/run/uneven_workers.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/analysis/process_figure.h"

namespace headrace::analysis {
namespace {

struct MadeBy {
  double batches, work_s, wait_s;
};

RunView RunOfWorkers(const std::vector<MadeBy>& workers) {
  RunView run;
  int64_t pid = 100;
  for (const MadeBy& worker : workers) {
    AddProcessFigure(&run, pid, "worker_batches_count", worker.batches);
    AddProcessFigure(&run, pid, "worker_work_ns", worker.work_s * 1e9);
    AddProcessFigure(&run, pid, "worker_wait_ns", worker.wait_s * 1e9);
    ++pid;
  }
  return run;
}

TEST(UnevenWorkers, AreThoseThatMadeBatchesDearestFirst) {
  const auto workers = LoaderWorkers(RunOfWorkers({{100, 2, 8}, {0, 0, 10}, {100, 9, 1}}));
  ASSERT_EQ(workers.size(), 2u);
  EXPECT_EQ(workers[0].pid, 102);
  EXPECT_DOUBLE_EQ(workers[0].batch_s(), 0.09);
  EXPECT_DOUBLE_EQ(workers[0].wait_ratio(), 0.1);
  EXPECT_TRUE(LoaderWorkers(RunOfWorkers({})).empty());
}

TEST(UnevenWorkers, AreFoundWhereItIsNoChance) {
  struct Case {
    const char* name;
    std::vector<MadeBy> workers;
    size_t count;
    double cv;
    int64_t pid;  // 0: none
  };
  const Case cases[] = {
      {"one of two has the long items", {{200, 9.8, 0.2}, {200, 2, 8}}, 2, 0.7, 100},
      {"one of four", {{80, 3, 7}, {80, 3, 7}, {81, 9.9, 0.1}, {80, 3.1, 6.9}}, 4, 0.6, 102},
      {"all alike", {{200, 9.8, 0.2}, {200, 9.5, 0.5}}, 2, 0.1, 0},
      {"as far apart as chance takes them", {{30, 9.8, 0.2}, {30, 6.8, 3.2}}, 2, 0.4, 0},
      {"few batches", {{12, 9.8, 0.2}, {12, 2, 8}}, 2, 0.1, 0},
      {"nobody takes them in turn", {{60, 9.8, 0.2}, {300, 9.8, 0.2}}, 2, 0.1, 0},
      {"nor here, although they are few", {{22, 9.8, 0.2}, {30, 9.8, 0.2}}, 2, 0.1, 0},
      {"workers of several epochs",
       {{100, 4, 1}, {100, 1, 4}, {100, 4, 1}, {100, 1, 4}},
       2,
       0.1,
       0},
      {"one worker", {{200, 9.8, 0.2}}, 1, 0.1, 0},
  };
  for (const Case& c : cases) {
    const auto uneven = FindUnevenWorkers(LoaderWorkers(RunOfWorkers(c.workers)), 0, c.count, c.cv);
    ASSERT_EQ(uneven.has_value(), c.pid != 0) << c.name;
    if (uneven) {
      EXPECT_EQ(uneven->slowest.pid, c.pid) << c.name;
    }
  }
  const auto uneven =
      FindUnevenWorkers(LoaderWorkers(RunOfWorkers({{200, 9, 1}, {200, 3, 7}})), 0, 2, 0.5);
  ASSERT_TRUE(uneven);
  EXPECT_DOUBLE_EQ(uneven->times, 1.5);
  EXPECT_EQ(Words(*uneven),
            "one of 2 workers (pid 100) takes 1.5 times as long for its batches as they take on "
            "average, and the others wait 70.0 % of their time");
}

// A dataset of one shard: one worker makes all, the others end at once.
TEST(UnevenWorkers, ThoseWithoutDataAreCountedAsIdle) {
  RunView run = RunOfWorkers({{200, 9, 1}});
  const auto add = [&](int64_t pid, int64_t parent, const char* name, double cpu_s) {
    ProcessRow process;
    process.process_id = process.pid = pid;
    process.parent_pid = parent;
    process.process = name;
    process.cpu_ns = static_cast<int64_t>(cpu_s * 1e9);
    run.processes.push_back(process);
  };
  add(1, 0, "python", 3);
  add(100, 1, "pt_data_worker", 9);
  EXPECT_EQ(CountIdleBeside(run, {100}, false), 0u);
  add(101, 1, "pt_data_worker", 0.03);
  add(102, 1, "resource_tracker", 0.03);
  add(103, 2, "pt_data_worker", 0.03);
  add(104, 1, "pt_data_worker", 2);  // whatever it does, it is not idle
  add(105, 1, "pt_data_worker", 0.03);
  run.processes.back().started_ns = 3'000'000'000;  // an evaluation's
  const std::vector<LoaderWorker> workers = LoaderWorkers(run);
  EXPECT_EQ(CountIdleBeside(run, {100}, false), 1u);
  EXPECT_EQ(CountIdleBeside(run, {}, false), 0u);
  EXPECT_FALSE(FindUnevenWorkers(workers, 1, 3, 0.1)) << "a third is not known";
  EXPECT_FALSE(FindUnevenWorkers({}, 2, 2, 0.1));
  EXPECT_EQ(CountIdleBeside(run, {100}, true), 0u) << "it is there all the time";
  run.run.duration_ns = 10'000'000'000;
  run.processes[2].ended_ns = 2'000'000'000;
  EXPECT_EQ(CountIdleBeside(run, {100}, true), 1u);
  // Who makes batches in full number has no idle one beside it.
  const auto both = LoaderWorkers(RunOfWorkers({{200, 9, 1}, {200, 3, 7}}));
  const auto slowest = FindUnevenWorkers(both, 1, 2, 0.5);
  ASSERT_TRUE(slowest);
  EXPECT_EQ(slowest->idle, 0u);
  const auto uneven = FindUnevenWorkers(workers, 1, 2, 0.1);
  ASSERT_TRUE(uneven);
  EXPECT_DOUBLE_EQ(uneven->times, 2);
  EXPECT_EQ(Words(*uneven),
            "1 of 2 workers (pid 100) makes all batches, and the other has nothing to do");
}

// Files of unequal length, dealt to workers that need not take turns.
TEST(UnevenWorkers, ThoseOfHardlyAnyDataAreIdle) {
  const auto find = [](const std::vector<MadeBy>& all) {
    return FindUnevenWorkers(LoaderWorkers(RunOfWorkers(all)), 0, all.size(), 0.3);
  };
  const auto uneven = find({{20, 0.3, 8}, {360, 9.4, 0.4}, {20, 0.3, 8}});
  ASSERT_TRUE(uneven);
  EXPECT_EQ(uneven->idle, 2u);
  EXPECT_DOUBLE_EQ(uneven->times, 3 * 0.94);
  EXPECT_EQ(Words(*uneven),
            "1 of 3 workers (pid 101) makes 90.0 % of the batches, and the others have next to "
            "nothing to do");
  EXPECT_FALSE(find({{100, 0.3, 8}, {360, 9.4, 0.4}})) << "too many batches of another kind";
  RunView run = RunOfWorkers({{20, 0.3, 8}, {360, 9.4, 0.4}});
  for (const int64_t pid : {100, 101}) {
    ProcessRow process;
    process.process_id = process.pid = pid;
    process.started_ns = (pid - 99) * 3'000'000'000;
    run.processes.push_back(process);
  }
  EXPECT_FALSE(FindUnevenWorkers(LoaderWorkers(run), 0, 2, 0.3)) << "of another loader";
}

}  // namespace
}  // namespace headrace::analysis
