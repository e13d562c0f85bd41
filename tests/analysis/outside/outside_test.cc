// Verdicts on runs seen from outside: who is the consumer, who feeds it, what limits, how sure.
#include "analysis/outside/outside.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/analysis/outside_run.h"

namespace headrace::analysis {
namespace {

using testing::HasSubstr;

const OutsideUnit& Culprit(const Outside& seen) { return seen.units[seen.culprit]; }

TEST(Outside, NamesWorkersThatComputeTooSlowly) {
  const Outside seen = LookFromOutside(Loader(2, 0.15, 0.8, 0.95, 0, 0.03).view);
  ASSERT_TRUE(seen.withheld.empty()) << seen.withheld;
  EXPECT_EQ(seen.knowledge, OutsideKnowledge::kWakers);
  EXPECT_EQ(seen.flavour, OutsideFlavour::kTorch);
  EXPECT_TRUE(seen.decided);
  EXPECT_EQ(seen.findings[0].limit, OutsideLimit::kProducers);
  EXPECT_GE(seen.findings[0].probability, 0.95);
  EXPECT_EQ(Culprit(seen).name, "2 processes pt_data_worker");
  EXPECT_NEAR(Culprit(seen).shares.on_cpu, 0.95, 0.04);
  EXPECT_NEAR(seen.stall_ratio, 0.84, 0.04);
  ASSERT_TRUE(seen.stall_interval);
  EXPECT_LT(seen.stall_interval->low, seen.stall_ratio);
  EXPECT_GT(seen.stall_interval->high, seen.stall_ratio);
  EXPECT_EQ(seen.units[0].role, UnitRole::kConsumer);
  EXPECT_EQ(seen.units[0].name, "python's main thread");
}

// Recordings in which operators' waits are in no thread's times do not show who waits for whom.
TEST(Outside, WaitsThatOnlyOperatorsHaveLeaveThreadsTimesOnTheCpu) {
  OutsideRun run = Loader(2, 0.15, 0.8, 0.95, 0, 0.03);
  MeasurementRow row;
  row.metric = "off_cpu_ns";
  row.operator_name = "step";
  row.value = 3e9;
  run.view.measurements.push_back(row);
  run.view.metrics.push_back("thread_on_cpu_ns");
  EXPECT_EQ(LookFromOutside(run.view).knowledge, OutsideKnowledge::kCpu);
  run.view.metrics.push_back("off_cpu_inside_ns");
  EXPECT_EQ(LookFromOutside(run.view).knowledge, OutsideKnowledge::kWakers);
}

TEST(Outside, NamesTheCoresWhenNoneIsLeft) {
  OutsideRun run = Loader(4, 0.15, 0.6, 0.5, 0, 0.03, 3.95);
  for (int w = 0; w < 4; ++w) run.Runnable(200 + w, "pt_data_worker (main)", 0.45);
  const Outside seen = LookFromOutside(run.view);
  EXPECT_EQ(seen.findings[0].limit, OutsideLimit::kCores);
  EXPECT_EQ(Culprit(seen).name, "4 processes pt_data_worker");
}

// Two workers of unequal items: the trainer waits for the batch that is due, the other worker for
// room.
TEST(Outside, IsNotSureWhereBothSidesWait) {
  const Outside seen = LookFromOutside(Loader(2, 0.4, 0.55, 0.6, 0, 0.38).view);
  EXPECT_EQ(seen.findings[0].limit, OutsideLimit::kProducers);
  EXPECT_FALSE(seen.decided);
  EXPECT_THAT(seen.measure, HasSubstr("both sides wait"));
}

TEST(Outside, NamesTheSlowestOfWorkersThatDiffer) {
  OutsideRun run = Loader(2, 0.3, 0.65, 0.55, 0, 0.42);
  // The same work and waits in all, but one worker has nearly all of the work.
  for (CourseRow& row : run.view.course) {
    if (row.thread != "pt_data_worker (main)") continue;
    if (row.metric == "on_cpu_ns") row.value *= row.process_id == 200 ? 0.95 / 0.55 : 0.15 / 0.55;
    if (row.metric == "off_cpu_ns" || row.metric == "wakeup_wait_ns") {
      row.value *= row.process_id == 200 ? 0.02 / 0.42 : 0.82 / 0.42;
    }
  }
  const Outside seen = LookFromOutside(run.view);
  EXPECT_EQ(seen.findings[0].limit, OutsideLimit::kProducers);
  EXPECT_TRUE(seen.decided);
  ASSERT_TRUE(Culprit(seen).uneven);
  EXPECT_EQ(Culprit(seen).uneven->pid, 200);
  EXPECT_NEAR(Culprit(seen).uneven->busiest_ratio, 0.96, 0.03);
  EXPECT_NEAR(Culprit(seen).uneven->others_ratio, 0.16, 0.03);
  // Those that work alike are not unequal.
  EXPECT_FALSE(Culprit(LookFromOutside(Loader(2, 0.3, 0.65, 0.9, 0, 0.07).view)).uneven);
}

// A worker of a low priority beside other processes of the program that compute all the time.
TEST(Outside, AThreadThatHardlyGetsACoreIsLimitedByCores) {
  const auto look = [](double ready) {
    OutsideRun run = Loader(1, 0.1, 0.85, 0.2, 0, 0.3, 3.0);
    run.Runnable(200, "pt_data_worker (main)", ready);
    for (const int64_t pid : {300, 301, 302}) {
      run.Process(pid, 100, "zip").OnCpu(pid, "zip (main)", 0.9);
    }
    return LookFromOutside(run.view);
  };
  const Outside starved = look(0.5);
  EXPECT_EQ(starved.findings[0].limit, OutsideLimit::kCores);
  ASSERT_TRUE(TakesCores(starved));
  EXPECT_THAT(starved.units[*TakesCores(starved)].name, HasSubstr("zip"));
  const Outside shares = look(0.3);
  EXPECT_EQ(shares.findings[0].limit, OutsideLimit::kProducers) << "it computes nearly as long";
}

// A dataset of fewer shards than workers.
TEST(Outside, CountsWorkersThatHaveNothingToDo) {
  OutsideRun run = Loader(2, 0.15, 0.8, 0.95, 0, 0.03);
  for (ProcessRow& process : run.view.processes) {
    process.cpu_ns = process.process_id == 100 ? 1'000'000'000 : 9'000'000'000;
  }
  EXPECT_EQ(Culprit(LookFromOutside(run.view)).idle_processes, 0u);
  // The others' times are of the same kind, whose name is that of its threads.
  run.Process(202, 100, "python").Add("on_cpu_ns", 202, "pt_data_worker (main)", "", 0.001);
  run.view.processes.back().cpu_ns = 30'000'000;
  EXPECT_EQ(Culprit(LookFromOutside(run.view)).idle_processes, 0u) << "an evaluation's";
  run.view.processes.back().ended_ns = 1'000'000'000;
  const Outside seen = LookFromOutside(run.view);
  EXPECT_EQ(Culprit(seen).idle_processes, 1u);
  EXPECT_THAT(WhyMoreDoNotHelp(seen, "workers"),
              HasSubstr("1 of 3 processes pt_data_worker had nothing to do: divide the data"));
}

TEST(Outside, IsLessSureBesideOthersThatTakeTheCores) {
  OutsideRun alone = Loader(2, 0.15, 0.8, 0.95, 0, 0.03);
  EXPECT_GE(LookFromOutside(alone.view).findings[0].probability, 0.95);
  // Of four cores, 3.9 are busy: two by this program.
  const Outside seen = LookFromOutside(Loader(2, 0.15, 0.8, 0.95, 0, 0.03, 3.9).view);
  EXPECT_GT(seen.findings[0].probability, 0.85);
  EXPECT_LT(seen.findings[0].probability, 0.95);
}

TEST(Outside, NamesAQuotaThatIsUsedUpWhileCoresAreFree) {
  OutsideRun run = Loader(4, 0.15, 0.6, 0.45, 0, 0.03, 2.1);
  for (int w = 0; w < 4; ++w) run.Runnable(200 + w, "pt_data_worker (main)", 0.5);
  EXPECT_EQ(LookFromOutside(run.view).findings[0].limit, OutsideLimit::kProducers);
  for (const auto& [metric, value] : {std::pair("cgroup_cpu_quota_cores", 2.0),
                                      {"cgroup_periods_count", 100.0},
                                      {"cgroup_throttled_count", 90.0}}) {
    MeasurementRow row;
    row.metric = metric;
    row.subject = "/job";
    row.value = value;
    run.view.measurements.push_back(row);
  }
  const Outside seen = LookFromOutside(run.view);
  EXPECT_EQ(seen.findings[0].limit, OutsideLimit::kCores);
  ASSERT_TRUE(seen.core_budget.quota);
  EXPECT_DOUBLE_EQ(seen.core_budget.quota->cores, 2.0);
  EXPECT_NEAR(seen.core_budget.quota->stopped_ratio.value_or(0), 0.9, 1e-9);
}

// Other processes of the program have the cores, which are not full in its first seconds.
TEST(Outside, ATrainerThatHardlyGetsACoreIsLimitedByThem) {
  const auto limit = [](double ready) {
    OutsideRun run = Loader(2, 0.26, 0.06, 0.05, 0, 0.9, 3.3);
    run.Runnable(100, "python (main)", ready);
    return LookFromOutside(run.view).findings[0].limit;
  };
  EXPECT_EQ(limit(0.66), OutsideLimit::kCores);
  EXPECT_EQ(limit(0.2), OutsideLimit::kConsumer);
}

// Workers that compute more than the trainer, which waits for a core about as long as it computes.
TEST(Outside, ATrainerThatItsWorkersKeepOffTheCoresIsLimitedByThem) {
  const auto look = [](double ready, double worker_cpu, double cores_busy, int zips) {
    OutsideRun run = Loader(4, 0.45, 0.08, worker_cpu, 0, 0.3, cores_busy);
    run.Runnable(100, "python (main)", ready);
    for (int64_t pid = 300; pid < 300 + zips; ++pid) {
      run.Process(pid, 100, "zip").OnCpu(pid, "zip (main)", 0.7);
    }
    return LookFromOutside(run.view);
  };
  const Outside seen = look(0.45, 0.6, 3.3, 0);
  EXPECT_EQ(seen.findings[0].limit, OutsideLimit::kCores);
  EXPECT_EQ(Culprit(seen).name, "4 processes pt_data_worker");
  EXPECT_LE(seen.findings[0].probability, 0.85);
  const auto limit = [&](double ready, double worker_cpu, double cores_busy, int zips) {
    return look(ready, worker_cpu, cores_busy, zips).findings[0].limit;
  };
  EXPECT_EQ(limit(0.2, 0.6, 3.3, 0), OutsideLimit::kConsumer) << "it hardly waits for a core";
  EXPECT_EQ(limit(0.45, 0.6, 3.9, 0), OutsideLimit::kConsumer) << "others have a core";
  EXPECT_EQ(limit(0.45, 0.15, 3.3, 3), OutsideLimit::kConsumer) << "its other processes do it";
}

TEST(Outside, NamesStorageBehindTheWorkers) {
  const Outside seen = LookFromOutside(Loader(2, 0.15, 0.8, 0.15, 0.8, 0.03).view);
  EXPECT_EQ(seen.findings[0].limit, OutsideLimit::kStorage);
  EXPECT_GE(seen.findings[0].probability, 0.95);
  EXPECT_EQ(Culprit(seen).name, "2 processes pt_data_worker");
}

TEST(Outside, NamesTheTrainerThatComputesTooSlowly) {
  const Outside seen = LookFromOutside(Loader(2, 0.93, 0.05, 0.1, 0, 0.88).view);
  EXPECT_EQ(seen.findings[0].limit, OutsideLimit::kConsumer);
  // From outside, unpickling large batches or drawing their samples looks the same.
  EXPECT_TRUE(MayUnpickle(seen));
  EXPECT_LT(seen.stall_ratio, 0.1);
  EXPECT_EQ(seen.culprit, 0u);
}

TEST(Outside, NamesPausesWhereEachSideWaitsForTheOther) {
  const Outside seen = LookFromOutside(Loader(1, 0.6, 0.38, 0.3, 0, 0.68).view);
  EXPECT_EQ(seen.findings[0].limit, OutsideLimit::kPauses);
  EXPECT_EQ(Culprit(seen).name, "process pt_data_worker (200)");
}

TEST(Outside, WorkersWithNothingToDoAreNoSingleThread) {
  const Outside seen = LookFromOutside(Loader(1, 0.98, 0.01, 0.01, 0, 0.97).view);
  EXPECT_EQ(seen.findings[0].limit, OutsideLimit::kConsumer);
}

TEST(Outside, CannotChooseBetweenEquals) {
  const Outside seen = LookFromOutside(Loader(1, 0.5, 0.48, 0.5, 0, 0.48).view);
  EXPECT_LT(seen.findings[0].probability, 0.95);
}

TEST(Outside, AnUndecidedVerdictSaysWhatWouldDecideIt) {
  const auto one_thread = [](const std::string& name, const char* command) {
    OutsideRun run;
    run.Process(1, 0, name, command).OnCpu(1, name + " (main)", 0.99);
    if (name == "java") run.Waits(1, "VM Thread", "lock", 0.99, "1/java (main)");
    return LookFromOutside(run.view);
  };
  const struct {
    Outside seen;
    const char* measure;
  } cases[] = {
      {one_thread("python", "python train.py"),
       "headrace.wrap() around what gives the batches tells loading from training"},
      {one_thread("java", "java Train"),
       "a profiler of Java's functions (async-profiler) tells loading from computing"},
      {one_thread("train", "./train"),
       "instrumenting the program (headrace/account.h) separates its parts"},
      {one_thread("python", "torchrun train.py"),
       "headrace.wrap(loader) tells loading from training; num_workers > 0 would run them at once"},
      {LookFromOutside(Loader(2, 0.4, 0.55, 0.6, 0, 0.38).view),
       "both sides wait for each other, as they do for a batch that is due while others are ready: "
       "'headrace profile -- COMMAND' with its import hook tells"}};
  for (const auto& each : cases) {
    EXPECT_FALSE(each.seen.decided);
    EXPECT_EQ(each.seen.measure, each.measure);
  }
}

// A program's own processes, which work at one task between them while the trainer waits for it.
TEST(Outside, WorkInTurnIsToBeHandedOutAhead) {
  const auto measure = [](double worker_cpu, double cores) {
    OutsideRun run(10, cores);
    run.Process(100, 1, "python", "python train.py").OnCpu(100, "python (main)", 0.3);
    for (const int64_t pid : {200, 201}) {
      run.Process(pid, 100, "python").OnCpu(pid, "python (main)", worker_cpu);
      run.Waits(pid, "python (main)", "lock", 1 - worker_cpu, "100/python (main)");
      run.Waits(100, "python (main)", "poll", 0.34, std::to_string(pid) + "/python (main)");
    }
    const Outside seen = LookFromOutside(run.view);
    EXPECT_FALSE(seen.decided);
    return seen.measure;
  };
  EXPECT_EQ(measure(0.36, 1.1),
            "2 processes python and the trainer wait for each other, and hardly ever work at once: "
            "hand out work ahead of the result that is taken, and compare");
  EXPECT_THAT(measure(0.6, 1.6), HasSubstr("record longer"));
  EXPECT_THAT(measure(0.36, 3.9), HasSubstr("record longer")) << "no core is free";
}

TEST(Outside, CountsOfWakeUpsDoWithLessSureness) {
  const Outside seen = LookFromOutside(Loader(2, 0.15, 0.8, 0.95, 0, 0.03, 1.2, false).view);
  EXPECT_EQ(seen.knowledge, OutsideKnowledge::kCounts);
  EXPECT_EQ(seen.findings[0].limit, OutsideLimit::kProducers);
  EXPECT_LE(seen.findings[0].probability, 0.95);
  EXPECT_NEAR(seen.stall_ratio, 0.84, 0.05);
  EXPECT_THAT(seen.unknown, testing::Contains(HasSubstr("how long each wait")));
}

TEST(Outside, CausesAloneAreTakenAsWaitsForTheOtherSide) {
  OutsideRun run;
  run.Process(1, 0, "reader").OnCpu(1, "reader (main)", 0.1);
  run.Blocked(1, "reader (main)", "lock", 0.9);
  run.OnCpu(1, "reader", 1.9);
  const Outside seen = LookFromOutside(run.view);
  EXPECT_EQ(seen.knowledge, OutsideKnowledge::kCauses);
  EXPECT_TRUE(seen.stall_assumed);
  EXPECT_EQ(seen.findings[0].limit, OutsideLimit::kProducers);
  EXPECT_LE(seen.findings[0].probability, 0.85);
  EXPECT_THAT(seen.unknown, testing::Contains(HasSubstr("who ends the waits")));
}

TEST(Outside, CpuAloneDecidesNothing) {
  OutsideRun run;
  run.view.metrics = {"thread_on_cpu_ns", "thread_runnable_ns"};
  run.Process(1, 0, "reader");
  run.Add("thread_on_cpu_ns", 1, "reader (main)", "", 0.1);
  run.Add("thread_on_cpu_ns", 1, "reader", "", 1.9);
  const Outside seen = LookFromOutside(run.view);
  EXPECT_EQ(seen.knowledge, OutsideKnowledge::kCpu);
  EXPECT_FALSE(seen.decided);
  EXPECT_THAT(seen.measure, HasSubstr("CAP_BPF"));
  run.view.probes.push_back({"off-CPU time", "degraded",
                             "stopped while recording: after 8 s recording took 8.7 %", "", ""});
  EXPECT_THAT(LookFromOutside(run.view).measure, HasSubstr("--level 3"));
}

// fetch -> decode -> main thread, all in one process; what limits is two steps away.
TEST(Outside, WalksToTheStageThatLimits) {
  OutsideRun run;
  run.Process(1, 0, "pipe");
  run.OnCpu(1, "pipe (main)", 0.1).Waits(1, "pipe (main)", "lock", 0.9, "1/decode-");
  run.OnCpu(1, "decode-", 0.4).Waits(1, "decode-", "lock", 1.6, "1/fetch-");
  run.OnCpu(1, "fetch-", 0.1).Blocked(1, "fetch-", "network", 0.88);
  run.Waits(1, "fetch-", "lock", 0.02, "1/decode-");
  const Outside seen = LookFromOutside(run.view);
  EXPECT_EQ(seen.findings[0].limit, OutsideLimit::kNetwork);
  EXPECT_EQ(Culprit(seen).name, "threads fetch-");
  EXPECT_EQ(Culprit(seen).distance, 2);
}

// A driver's thread sits at its socket and hardly ever exchanges anything with the main thread.
TEST(Outside, AThreadThatEndsNoneOfTheTrainersWaitsIsNotTheLimit) {
  OutsideRun run;
  run.Process(1, 0, "train");
  run.Process(2, 1, "worker");
  run.OnCpu(1, "train (main)", 0.1).Waits(1, "train (main)", "lock", 0.9, "1/pin");
  run.OnCpu(1, "pin", 0.05).Waits(1, "pin", "pipe", 0.95, "2/worker (main)");
  run.OnCpu(1, "events", 0.001).Blocked(1, "events", "network", 0.98);
  run.Waits(1, "events", "lock", 0.01, "1/train (main)");
  run.OnCpu(2, "worker (main)", 0.95).Waits(2, "worker (main)", "pipe", 0.05, "1/pin");
  const Outside seen = LookFromOutside(run.view);
  EXPECT_EQ(seen.findings[0].limit, OutsideLimit::kProducers);
  EXPECT_THAT(Culprit(seen).name, HasSubstr("worker"));
}

TEST(Outside, NamesALockThatTheReadersHoldInTurn) {
  OutsideRun run;
  run.Process(1, 0, "pipe");
  run.OnCpu(1, "pipe (main)", 0.1).Waits(1, "pipe (main)", "lock", 0.9, "1/reader-");
  run.OnCpu(1, "reader-", 0.2).Blocked(1, "reader-", "sleep", 0.9);
  run.Waits(1, "reader-", "lock", 2.8, "1/reader-");
  const Outside seen = LookFromOutside(run.view);
  EXPECT_EQ(seen.findings[0].limit, OutsideLimit::kLock);
}

// One of four processes at a time holds a semaphore, and waits for a simulator meanwhile.
TEST(Outside, NamesALockThatIsHeldDuringAWaitForAnotherProcess) {
  OutsideRun run;
  run.Process(100, 1, "python").OnCpu(100, "python (main)", 0.08);
  run.Process(150, 100, "simulator").Blocked(150, "simulator (main)", "sleep", 0.95);
  for (int64_t pid = 200; pid < 204; ++pid) {
    run.Process(pid, 100, "worker").OnCpu(pid, "worker (main)", 0.01);
    run.Waits(pid, "worker (main)", "lock", 0.73,
              std::to_string(200 + (pid + 1) % 4) + "/worker (main)");
    run.Waits(pid, "worker (main)", "pipe", 0.25, "150/simulator (main)");
    run.Waits(150, "simulator (main)", "pipe", 0.0125, std::to_string(pid) + "/worker (main)");
    run.Waits(100, "python (main)", "pipe", 0.23, std::to_string(pid) + "/worker (main)");
  }
  const Outside seen = LookFromOutside(run.view);
  EXPECT_EQ(seen.findings[0].limit, OutsideLimit::kLock);
  EXPECT_EQ(seen.kinds[seen.units[seen.culprit].kind].name, "worker");
}

// Four threads decode under one lock, and do a little outside of it.
TEST(Outside, NamesALockBesideWhichALittleIsDone) {
  OutsideRun run;
  run.Process(1, 0, "columns");
  run.OnCpu(1, "columns (main)", 0.07).Runnable(1, "columns (main)", 0.15);
  run.Waits(1, "columns (main)", "lock", 0.78, "1/columns");
  run.OnCpu(1, "columns", 1.13).Runnable(1, "columns", 0.2);
  run.Waits(1, "columns", "lock", 2.6, "1/columns");
  const Outside seen = LookFromOutside(run.view);
  EXPECT_EQ(seen.findings[0].limit, OutsideLimit::kLock);
  EXPECT_FALSE(seen.decided) << "a queue between threads of one name looks the same";
}

// Python asks a socket with a time limit by poll(). Who ended the wait is not of the program.
TEST(Outside, AWaitForASocketInPollIsTheNetwork) {
  OutsideRun run;
  run.Process(1, 0, "python");
  run.OnCpu(1, "python (main)", 0.05).Waits(1, "python (main)", "lock", 0.93, "1/python");
  run.OnCpu(1, "python", 0.12).Blocked(1, "python", "poll", 1.79);
  run.Waits(1, "python", "lock", 0.98, "1/python (main)");
  EXPECT_EQ(LookFromOutside(run.view).findings[0].limit, OutsideLimit::kNone)
      << "5 % of work are not what limits, and the rest is not known";
  run.view.receiving_ns[1] = 1'000'000'000;
  EXPECT_EQ(LookFromOutside(run.view).findings[0].limit, OutsideLimit::kNone) << "only once";
  run.view.receiving_ns[1] = 9'000'000'000;
  EXPECT_EQ(LookFromOutside(run.view).findings[0].limit, OutsideLimit::kNetwork);
}

TEST(Outside, OneThreadForEverythingIsSaidSo) {
  OutsideRun run;
  run.Process(1, 0, "python", "python train.py");
  run.OnCpu(1, "python (main)", 0.97).OnCpu(1, "python", 0.01);
  run.Blocked(1, "python (main)", "storage", 0.02);
  run.Waits(1, "python", "lock", 0.99, "1/python (main)");
  Outside seen = LookFromOutside(run.view);
  EXPECT_EQ(seen.findings[0].limit, OutsideLimit::kAlone);
  EXPECT_FALSE(seen.decided);
  EXPECT_FALSE(seen.measure.empty());

  OutsideRun slow;
  slow.Process(1, 0, "python").OnCpu(1, "python (main)", 0.2);
  slow.Blocked(1, "python (main)", "storage", 0.8);
  seen = LookFromOutside(slow.view);
  EXPECT_EQ(seen.findings[0].limit, OutsideLimit::kStorage);
  EXPECT_TRUE(seen.decided);
  EXPECT_EQ(seen.culprit, 0u);
}

TEST(Outside, LooksBelowALauncher) {
  OutsideRun run = Loader(2, 0.15, 0.8, 0.95, 0, 0.03);
  run.view.processes[0].parent_pid = 50;
  run.Process(50, 1, "bash");
  run.OnCpu(50, "bash (main)", 0.001).Blocked(50, "bash (main)", "child", 0.99);
  const Outside seen = LookFromOutside(run.view);
  EXPECT_EQ(seen.units[0].name, "python's main thread");
  EXPECT_EQ(seen.findings[0].limit, OutsideLimit::kProducers);
}

// The agent of torchrun computes at the start (imports), then looks after its ranks now and then.
TEST(Outside, LooksBelowAnAgentThatSleeps) {
  OutsideRun run = Loader(2, 0.15, 0.8, 0.95, 0, 0.03);
  run.view.processes[0].parent_pid = 50;
  run.Process(50, 1, "pt_elastic");
  run.OnCpu(50, "pt_elastic (main)", 0.25).Blocked(50, "pt_elastic (main)", "sleep", 0.7);
  const Outside seen = LookFromOutside(run.view);
  EXPECT_EQ(seen.units[0].name, "python's main thread");
  EXPECT_EQ(seen.findings[0].limit, OutsideLimit::kProducers);
}

// The first thread of a JVM waits for the one that runs main().
TEST(Outside, TheFirstThreadOfAJvmIsNoConsumer) {
  OutsideRun run;
  run.Process(1, 0, "java");
  run.Blocked(1, "java (main)", "lock", 0.999);
  run.view.course.push_back({0, "wakeups_count", 1, "java (main)", "1/java", "lock", 1});
  run.OnCpu(1, "java", 0.1).Waits(1, "java", "lock", 0.89, "1/reader-");
  run.OnCpu(1, "reader-", 0.05).Blocked(1, "reader-", "network", 1.9);
  run.Waits(1, "reader-", "lock", 0.01, "1/java");
  run.OnCpu(1, "G1 Service", 0.0001).Blocked(1, "G1 Service", "sleep", 0.99);
  const Outside seen = LookFromOutside(run.view);
  EXPECT_EQ(seen.units[0].name, "thread java");
  EXPECT_EQ(seen.findings[0].limit, OutsideLimit::kNetwork);
  EXPECT_NEAR(seen.stall_ratio, 0.89, 0.05);
}

// A thread that the author of a Java program made, and not one of the machine's, keeps up.
TEST(Outside, AThreadOfJavaThatWaitsForTheTrainerFeedsIt) {
  const auto with = [](const std::string& thread, const std::string& feeder) {
    OutsideRun run;
    run.Process(1, 0, "java");
    run.Blocked(1, "java (main)", "lock", 0.999);
    run.view.course.push_back({0, "wakeups_count", 1, "java (main)", "1/java", "lock", 1});
    run.OnCpu(1, "java", 0.97).Waits(1, "java", "lock", 0.02, "1/" + feeder);
    run.OnCpu(1, thread, 0.01).Waits(1, thread, "lock", 0.98, "1/java");
    run.OnCpu(1, "VM Thread", 0.0001).Blocked(1, "VM Thread", "sleep", 0.99);
    return LookFromOutside(run.view).findings[0].limit;
  };
  EXPECT_EQ(with("reader", "reader"), OutsideLimit::kConsumer);
  EXPECT_EQ(with("GC Thread#", "GC Thread#"), OutsideLimit::kAlone);
  EXPECT_EQ(with("AsyncAppender", "VM Thread"), OutsideLimit::kAlone) << "it ends no wait";
}

// Environments compute in turn with the trainer, four on too few cores: who waits says little.
TEST(Outside, OfTwoSidesThatTakeTurnsTheLongerLimits) {
  const auto with = [](double trainer_cpu, double each_cpu) {
    OutsideRun run(10, 1.6);
    run.view.hosts[1].mean_value = run.view.run.cores_count = 2;
    run.Process(100, 1, "python", "python train.py").OnCpu(100, "python (main)", trainer_cpu);
    run.Runnable(100, "python (main)", 0.57 - trainer_cpu);
    for (int64_t pid = 200; pid < 204; ++pid) {
      run.Process(pid, 100, "env").OnCpu(pid, "env (main)", each_cpu);
      run.Runnable(pid, "env (main)", 0.6 - each_cpu);
      run.Waits(pid, "env (main)", "pipe", 0.4, "100/python (main)");
      run.Waits(100, "python (main)", "pipe", 0.43 / 4, std::to_string(pid) + "/env (main)");
    }
    return LookFromOutside(run.view);
  };
  const Outside longer = with(0.26, 0.3);
  EXPECT_TRUE(longer.decided);
  EXPECT_EQ(longer.findings[0].limit, OutsideLimit::kProducers);
  EXPECT_EQ(with(0.45, 0.12).findings[0].limit, OutsideLimit::kConsumer);
  EXPECT_FALSE(with(0.4, 0.25).decided) << "they are about as long";
  const Outside nearly = with(0.45, 0.17);
  EXPECT_TRUE(nearly.findings[0].limit != OutsideLimit::kConsumer || !nearly.decided);
}

// It asks a server of its own program, whose threads look as if they did little.
TEST(Outside, ATrainerThatItselfWaitsForTheNetworkIsLimitedByIt) {
  OutsideRun run(10, 0.4);
  run.Process(100, 1, "python", "python train.py");
  run.OnCpu(100, "python (main)", 0.14).Blocked(100, "python (main)", "network", 0.86);
  run.Process(101, 100, "server").OnCpu(101, "server (main)", 0.01);
  run.Blocked(101, "server (main)", "sleep", 0.45).Blocked(101, "server (main)", "poll", 0.54);
  run.Waits(100, "python (main)", "poll", 0.0005, "101/server (main)");
  run.Waits(101, "server (main)", "poll", 0.001, "100/python (main)");
  EXPECT_EQ(LookFromOutside(run.view).findings[0].limit, OutsideLimit::kNetwork);
}

// Three threads of Python that together use one of four cores.
TEST(Outside, NamesTheLockOfTheInterpreter) {
  const auto threads = [](const char* name, double cores_busy, double timed) {
    OutsideRun run(10, cores_busy);
    const std::string thread = name;
    run.Process(1, 0, thread);
    run.OnCpu(1, thread + " (main)", 0.18).Blocked(1, thread + " (main)", "sleep", 0.2);
    run.Waits(1, thread + " (main)", "lock", 0.55, "1/" + thread);
    run.OnCpu(1, thread, 0.82).Blocked(1, thread, "sleep", timed);
    run.Waits(1, thread, "lock", 0.1, "1/" + thread + " (main)");
    return LookFromOutside(run.view).findings[0];
  };
  const OutsideFinding shared = threads("python3.11", 1.2, 0.7);
  EXPECT_EQ(shared.limit, OutsideLimit::kInterpreter);
  EXPECT_LE(shared.probability, 0.9);
  EXPECT_NE(threads("reader", 1.2, 0.7).limit, OutsideLimit::kInterpreter) << "no Python";
  EXPECT_NE(threads("python3.11", 3.9, 0.7).limit, OutsideLimit::kInterpreter) << "full cores";
  EXPECT_NE(threads("python3.11", 1.2, 0.0).limit, OutsideLimit::kInterpreter) << "no timed waits";
}

// Three threads that parse and one that takes what they made, all in turn: whose turn it is, the
// others wait until it is handed on, without a time limit.
TEST(Outside, NamesTheLockOfTheInterpreterWhereNobodyIsBusy) {
  const auto threads = [](double more) {
    OutsideRun run(10, 1.0 + more);
    run.Process(1, 0, "python");
    run.OnCpu(1, "python (main)", 0.05).Runnable(1, "python (main)", 0.35);
    run.Waits(1, "python (main)", "lock", 0.59, "1/python");
    run.OnCpu(1, "python", 0.96 + more).Runnable(1, "python", 0.03);
    run.Waits(1, "python", "lock", 2.93 - more, "1/python (main)");
    return LookFromOutside(run.view).findings[0];
  };
  EXPECT_EQ(threads(0).limit, OutsideLimit::kInterpreter);
  EXPECT_LE(threads(0).probability, 0.6) << "a queue looks the same";
  EXPECT_NE(threads(0.8).limit, OutsideLimit::kInterpreter) << "they compute at once";
}

// A consumer whose step sleeps looks like a launcher, but for the waits of its workers that it
// ends.
TEST(Outside, AConsumerThatSleepsIsNoLauncher) {
  OutsideRun run;
  run.Process(100, 1, "python", "python plain.py");
  run.OnCpu(100, "python (main)", 0.012).Blocked(100, "python (main)", "sleep", 0.95);
  for (const int64_t pid : {int64_t{200}, int64_t{201}}) {
    run.Process(pid, 100, "python");
    run.OnCpu(pid, "python (main)", 0.03).Runnable(pid, "python (main)", 0.05);
    run.Waits(pid, "python (main)", "lock", 0.9, "100/python (main)");
    run.Waits(100, "python (main)", "pipe", 0.01, std::to_string(pid) + "/python (main)");
  }
  const Outside seen = LookFromOutside(run.view);
  EXPECT_EQ(seen.findings[0].limit, OutsideLimit::kConsumer);
  EXPECT_LT(seen.stall_ratio, 0.1);
  EXPECT_EQ(seen.culprit, 0u);
}

TEST(Outside, AToolThatRanForAMomentFeedsNobody) {
  OutsideRun run;
  run.Process(1, 0, "python", "python train.py").OnCpu(1, "python (main)", 0.98);
  run.Process(2, 1, "ldconfig");
  run.view.course.push_back({0, "on_cpu_ns", 2, "ldconfig (main)", "", "", 30e6});
  run.view.course.push_back({0, "off_cpu_ns", 1, "python (main)", "", "pipe", 30e6});
  run.view.course.push_back(
      {0, "wakeups_count", 1, "python (main)", "2/ldconfig (main)", "pipe", 5});
  run.view.course.push_back(
      {0, "wakeup_wait_ns", 1, "python (main)", "2/ldconfig (main)", "pipe", 30e6});
  EXPECT_EQ(LookFromOutside(run.view).findings[0].limit, OutsideLimit::kAlone);
}

// A main thread that only sleeps between its own reads looks like a launcher; a tool that it once
// ran is not what it has launched.
TEST(Outside, AToolThatRanForAMomentIsNoConsumer) {
  OutsideRun run;
  run.Process(1, 0, "python", "python train.py");
  run.OnCpu(1, "python (main)", 0.06).Blocked(1, "python (main)", "sleep", 0.93);
  run.Process(2, 1, "ldconfig");
  run.view.course.push_back({0, "on_cpu_ns", 2, "ldconfig (main)", "", "", 30e6});
  EXPECT_EQ(LookFromOutside(run.view).units[0].name, "python's main thread");
}

// The threads of concurrent.futures hand work on and wait for each other; a process computes.
TEST(Outside, ThreadsThatHandWorkOnAreNotTheLimit) {
  OutsideRun run;
  run.Process(1, 0, "python", "python train.py").Process(2, 1, "python");
  run.OnCpu(1, "python (main)", 0.13).Waits(1, "python (main)", "lock", 0.86, "1/python");
  run.OnCpu(1, "python", 0.05).Runnable(1, "python", 0.1);
  run.Waits(1, "python", "lock", 0.97, "1/python");
  run.Waits(1, "python", "poll", 0.84, "2/python (main)");
  run.OnCpu(2, "python (main)", 0.99).Waits(2, "python (main)", "pipe", 0.005, "1/python");
  const Outside seen = LookFromOutside(run.view);
  EXPECT_EQ(seen.findings[0].limit, OutsideLimit::kProducers);
  EXPECT_EQ(Culprit(seen).name, "process python (2)");
}

// A run-time's own thread sleeps beside the one that computes; both have the program's name.
TEST(Outside, AThreadThatSleepsBesideOneThatComputesIsNoTimer) {
  OutsideRun run;
  run.Process(1, 0, "loader");
  run.OnCpu(1, "loader (main)", 0.15).Waits(1, "loader (main)", "lock", 0.85, "1/loader");
  run.OnCpu(1, "loader", 0.95).Blocked(1, "loader", "sleep", 0.98);
  run.Waits(1, "loader", "lock", 1.0, "1/loader");
  EXPECT_EQ(LookFromOutside(run.view).findings[0].limit, OutsideLimit::kProducers);
}

TEST(Outside, OneMoreHasRoomWhereHalfOfItIsFree) {
  EXPECT_EQ(RoomForMore(1, 0.85, 0.98, 0.8).count, 2);
  EXPECT_NEAR(RoomForMore(1, 0.85, 0.98, 0.8).at_most, 1.82, 0.01);
  EXPECT_EQ(RoomForMore(1, 0.85, 0.98, 0.4).count, 1);
  EXPECT_EQ(RoomForMore(2, 0.5, 0.1, 10).count, 4);  // the consumer wants no more
  EXPECT_EQ(RoomForMore(3, 0, 0.5, 4).count, 3);
}

// Ten seconds of loading libraries before the pipeline begins are not the pipeline's. These start
// threads of their own, which exchange more than workers do.
TEST(Outside, LeavesOutTheStartOfTheProgram) {
  for (const double exchanges : {0.0, 2000.0}) {
    SCOPED_TRACE(exchanges);
    OutsideRun run = Loader(2, 0.15, 0.8, 0.95, 0, 0.03);
    const int64_t shift = 20;
    for (CourseRow& row : run.view.course) row.slice += shift;
    for (int64_t s = 0; s < shift; ++s) {
      run.view.course.push_back({s, "on_cpu_ns", 100, "python (main)", "", "", 500e6});
      if (exchanges == 0) continue;
      run.view.course.push_back(
          {s, "wakeups_count", 100, "python (main)", "100/init", "lock", exchanges});
    }
    run.view.run.duration_ns *= 2;
    const Outside seen = LookFromOutside(run.view);
    EXPECT_EQ(seen.findings[0].limit, OutsideLimit::kProducers);
    EXPECT_NEAR(seen.stall_ratio, 0.84, 0.04);
    EXPECT_LE(seen.steady_slices, 20u);
  }
}

}  // namespace
}  // namespace headrace::analysis
