// Words of the first page that no golden shows: what is advised for each limit of a run seen from
// outside, and pages without a verdict.
#include "dashboards/report/outside_words.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "analysis/advice/statements.h"
#include "analysis/outside/outside.h"
#include "dashboards/report/first_page.h"
#include "dashboards/report/losses.h"
#include "dashboards/report/outside_advice.h"
#include "tests/analysis/outside_run.h"
#include "tests/analysis/synthetic_run.h"
#include "tests/dashboards/example_pipeline.h"
#include "tests/dashboards/page_lines.h"

namespace headrace::dashboards {
namespace {

using analysis::Outside;
using analysis::OutsideLimit;
using testing::HasSubstr;

// Two loaders of a torch program limit it.
analysis::RunView LimitedByWorkers() { return analysis::Loader(2, 0.15, 0.8, 0.95, 0, 0.03).view; }

TEST(OutsideWords, EachLimitHasItsAdvice) {
  const analysis::RunView run = LimitedByWorkers();
  const Outside workers = analysis::LookFromOutside(run);
  ASSERT_FALSE(workers.findings.empty());
  const auto advice = [&](OutsideLimit limit, void (*change)(Outside*) = nullptr) {
    Outside seen = workers;
    seen.findings[0].limit = limit;
    if (change != nullptr) change(&seen);
    return Advice(run, seen);
  };
  EXPECT_THAT(advice(OutsideLimit::kProducers), HasSubstr("num_workers 2 -> "));
  EXPECT_THAT(advice(OutsideLimit::kProducers, [](Outside* seen) { seen->cores_free = 0; }),
              HasSubstr("a cheaper __getitem__ or collate_fn: no core is left for more of them"));
  EXPECT_THAT(advice(OutsideLimit::kProducers, [](Outside* seen) { seen->cores_free.reset(); }),
              HasSubstr("more of the workers, while cores are left; or "));
  EXPECT_THAT(advice(OutsideLimit::kProducers,
                     [](Outside* seen) {
                       seen->compute_place = "recv (multiprocessing/connection.py:250)";
                     }),
              HasSubstr("more processes do not help, as one thread unpickles what all of them"));
  EXPECT_THAT(advice(OutsideLimit::kProducers,
                     [](Outside* seen) {
                       seen->is_busy_thread = true;
                       seen->python_threads.emplace().busy_function = "pack (feed.py:4)";
                     }),
              HasSubstr("make pack (feed.py:4) cheaper, or divide its work among several"));
  EXPECT_THAT(advice(OutsideLimit::kProducers,
                     [](Outside* seen) {
                       seen->is_busy_thread = true;
                       seen->python_threads.emplace().busy_function =
                           "Pool._handle_tasks (multiprocessing/pool.py:531)";
                     }),
              HasSubstr("exchange less with the pool's processes: several items for each task"));
  EXPECT_THAT(advice(OutsideLimit::kProducers,
                     [](Outside* seen) {
                       seen->is_busy_thread = true;
                       seen->python_threads.emplace().busy_thread = "_handle_tasks";
                       seen->python_threads->busy_function = "records (train.py:9)";
                     }),
              HasSubstr("make records (train.py:9) cheaper"))
      << "it makes the tasks that it hands out";
  EXPECT_THAT(advice(OutsideLimit::kProducers,
                     [](Outside* seen) { seen->workers.emplace().start_ratio = 0.8; }),
              HasSubstr("persistent_workers=True in the DataLoader, so that workers are started"));
  EXPECT_THAT(advice(OutsideLimit::kCores),
              HasSubstr("or more cores: more threads or processes do not help"));
  EXPECT_THAT(advice(OutsideLimit::kCores, [](Outside* seen) { seen->cores_others = 2; }),
              HasSubstr("they use 2.0; until then num_workers 2 -> 3 takes another share of the "
                        "cores; else a cheaper"));
  EXPECT_THAT(advice(OutsideLimit::kCores,
                     [](Outside* seen) {
                       seen->cores_others = 2;
                       seen->core_budget.cores = 2;
                     }),
              HasSubstr("they use 2.0; else a cheaper"))
      << "there are as many as cores";
  EXPECT_THAT(advice(OutsideLimit::kCores,
                     [](Outside* seen) {
                       seen->core_budget.quota = analysis::CpuQuota{0.5, 0.3};
                     }),
              HasSubstr("raise the CPU quota of 0.50 cores, or "));
  EXPECT_THAT(advice(OutsideLimit::kStorage), HasSubstr("larger or fewer reads, more of them"));
  for (const OutsideLimit limit : {OutsideLimit::kNetwork, OutsideLimit::kSleep}) {
    EXPECT_THAT(advice(limit, [](Outside* seen) { seen->is_asked_over_network = true; }),
                HasSubstr("more requests at once, unless the server limits their rate"));
  }
  EXPECT_THAT(advice(OutsideLimit::kNetwork),
              HasSubstr("more requests at once, larger ones, or a copy nearby"));
  EXPECT_THAT(
      advice(OutsideLimit::kNetwork,
             [](Outside* seen) {
               analysis::OutsideUnit& unit = seen->units[seen->culprit];
               unit.threads_count = 8;
               unit.shares = {};
               unit.shares.network = 0.14;
               unit.shares.lock = 0.48;
               unit.shares.wait_consumer = 0.37;
             }),
      HasSubstr("only 1.1 requests of 8 threads are under way at a time: ask further ahead"));
  EXPECT_THAT(advice(OutsideLimit::kInterpreter),
              HasSubstr("processes instead of threads: one thread of a process runs Python"));
  EXPECT_THAT(advice(OutsideLimit::kLock), HasSubstr("hold the lock for less time or split it"));
  EXPECT_THAT(advice(OutsideLimit::kSleep),
              HasSubstr("find what sleeps: a retry, a rate limit, or polling"));
  EXPECT_THAT(advice(OutsideLimit::kConsumer),
              HasSubstr("its waits come in bursts, which a longer queue may remove"));
  EXPECT_THAT(advice(OutsideLimit::kPauses), HasSubstr("a longer queue may bridge the pauses"));
  EXPECT_THAT(advice(OutsideLimit::kAlone),
              HasSubstr("if it loads data: num_workers 0 -> 1 or more, so that loading runs beside "
                        "the step; one brings at most 2 times the rate"));
  EXPECT_EQ(advice(OutsideLimit::kNone), "");
}

TEST(OutsideWords, ALockOnADatabaseIsCalledSo) {
  const analysis::RunView run = LimitedByWorkers();
  Outside seen = analysis::LookFromOutside(run);
  seen.findings = {{OutsideLimit::kLock, 0.9}};
  analysis::UnitShares shares;
  shares.on_cpu = 0.2;
  shares.other = shares.file_lock = shares.database_lock = 0.8;
  seen.units[seen.culprit].shares = shares;
  FirstPage page;
  AddOutsidePage(run, seen, &page);
  EXPECT_THAT(LineOf(page, "limit"), HasSubstr("a lock on an SQLite database"));
  EXPECT_THAT(LineOf(page, "why"), HasSubstr("waiting for a lock in SQLite 80"));
  EXPECT_THAT(LineOf(page, "fix"), HasSubstr("journal_mode=WAL"));
}

TEST(OutsideWords, ObjectsHandedOverAreCalledSo) {
  const analysis::RunView run = LimitedByWorkers();
  Outside seen = analysis::LookFromOutside(run);
  seen.findings = {{OutsideLimit::kHandOver, 0.75}};
  FirstPage page;
  AddOutsidePage(run, seen, &page);
  EXPECT_THAT(LineOf(page, "limit"), HasSubstr("the hand-over of objects between processes"));
  EXPECT_THAT(LineOf(page, "fix"), HasSubstr("shared_memory"));
}

// Whose names are those of the trainer's own process, and of others.
TEST(OutsideWords, ProcessesAndThreadsAreCounted) {
  const analysis::RunView run = LimitedByWorkers();
  const auto line = [&](const std::string& kind, bool main, const char* label, size_t pids = 1) {
    Outside seen = analysis::LookFromOutside(run);
    seen.findings = {{OutsideLimit::kProducers, 0.95}};
    seen.flavour = analysis::OutsideFlavour::kPlain;
    seen.uses_training_library = true;
    analysis::OutsideUnit& unit = seen.units[seen.culprit];
    unit.threads_count = 1;
    unit.name = "threads decode";
    seen.kinds[unit.kind].name = kind;
    seen.kinds[unit.kind].pids.resize(pids, 300);
    seen.groups[unit.key_group].main = main;
    FirstPage page;
    AddOutsidePage(run, seen, &page);
    return LineOf(page, label);
  };
  EXPECT_THAT(line("python", true, "limit"), HasSubstr("the trainer's child process (prob"));
  EXPECT_THAT(line("python", true, "limit", 2), HasSubstr("the trainer's child processes (prob"));
  EXPECT_THAT(line("python", true, "fix"), HasSubstr("processes python 1 -> "));
  EXPECT_THAT(line("decoder", true, "fix"), HasSubstr("processes decoder 1 -> "));
  EXPECT_THAT(line("decoder", false, "fix"), HasSubstr("threads decode 1 -> "));
}

TEST(OutsideWords, ALockOnAFileIsCalledSo) {
  const analysis::RunView run = LimitedByWorkers();
  Outside seen = analysis::LookFromOutside(run);
  seen.findings = {{OutsideLimit::kLock, 0.9}};
  analysis::UnitShares shares;
  shares.on_cpu = 0.1;
  shares.wait_input = 0.3;
  shares.other = shares.file_lock = 0.6;
  seen.units[seen.culprit].shares = shares;
  FirstPage page;
  AddOutsidePage(run, seen, &page);
  EXPECT_THAT(LineOf(page, "limit"), HasSubstr("a lock on a file"));
  EXPECT_THAT(LineOf(page, "why"),
              HasSubstr("waiting for their input 30.0 %, waiting to lock a file 60"));
  EXPECT_THAT(LineOf(page, "fix"), HasSubstr("more processes only wait for it"));
}

TEST(OutsideWords, PausesOfWorkersThatAreStartedAgainAndAgainAreTheirStart) {
  const analysis::RunView run = LimitedByWorkers();
  const auto page = [&](int64_t processes) {
    Outside seen = analysis::LookFromOutside(run);
    seen.findings = {{OutsideLimit::kPauses, 0.95}};
    seen.steady_s = 9;
    seen.units[seen.culprit].threads_count = 2;
    analysis::ProcessKind& kind = seen.kinds[seen.units[seen.culprit].kind];
    kind.name = "pt_data_worker";
    kind.pids.clear();
    for (int64_t pid = 0; pid < processes; ++pid) kind.pids.push_back(300 + pid);
    FirstPage page;
    AddOutsidePage(run, seen, &page);
    return LineOf(page, "limit") + "\n" + Advice(run, seen);
  };
  EXPECT_THAT(page(60), HasSubstr("the start of the workers, again and again"));
  EXPECT_THAT(page(60), HasSubstr("persistent_workers=True in the DataLoader, so that workers are "
                                  "started once: at most"));
  EXPECT_THAT(page(12), HasSubstr("pauses of the workers")) << "a few epochs";
  EXPECT_THAT(page(30), HasSubstr("pauses of the workers")) << "each lives long";
}

// Also where the trainer is the limit: starting and ending them is its work.
TEST(OutsideWords, ATrainerThatStartsWorkersAgainAndAgainIsToldToKeepThem) {
  const analysis::RunView run = LimitedByWorkers();
  const auto advice = [&](OutsideLimit limit, int64_t processes) {
    Outside seen = analysis::LookFromOutside(run);
    analysis::OutsideUnit& unit = seen.units[seen.culprit];
    unit.threads_count = 2;
    unit.role = analysis::UnitRole::kProducer;
    analysis::ProcessKind& kind = seen.kinds[unit.kind];
    kind.name = "pt_data_worker";
    kind.pids.clear();
    for (int64_t pid = 0; pid < processes; ++pid) kind.pids.push_back(300 + pid);
    seen.flavour = analysis::OutsideFlavour::kTorch;
    seen.findings = {{limit, 0.95}};
    seen.steady_s = 9;
    if (limit == OutsideLimit::kConsumer) seen.culprit = 0;
    FirstPage page;
    AddOutsidePage(run, seen, &page);
    return LineOf(page, "limit") + "\n" + Advice(run, seen);
  };
  EXPECT_THAT(advice(OutsideLimit::kConsumer, 60), HasSubstr("persistent_workers=True"));
  EXPECT_THAT(advice(OutsideLimit::kConsumer, 60), HasSubstr("Or a cheaper step"));
  EXPECT_THAT(advice(OutsideLimit::kConsumer, 2), Not(HasSubstr("persistent_workers")));
  EXPECT_THAT(advice(OutsideLimit::kProducers, 60), HasSubstr("the workers, started again and"));
  EXPECT_THAT(advice(OutsideLimit::kProducers, 2), HasSubstr("the workers (probability"));
}

// How much of it is their start nobody saw: no number of them is advised.
TEST(OutsideWords, ProcessesThatFollowEachOtherAreSaidTo) {
  const analysis::RunView run = LimitedByWorkers();
  const auto page = [&](OutsideLimit limit, int64_t processes) {
    Outside seen = analysis::LookFromOutside(run);
    seen.findings = {{limit, 0.95}};
    seen.flavour = analysis::OutsideFlavour::kPlain;
    seen.uses_training_library = true;
    seen.steady_s = 9;
    analysis::OutsideUnit& unit = seen.units[seen.culprit];
    unit.threads_count = 2;
    unit.name = "processes";
    analysis::ProcessKind& kind = seen.kinds[unit.kind];
    kind.name = "ffmpeg";
    kind.pids.clear();
    for (int64_t pid = 0; pid < processes; ++pid) kind.pids.push_back(300 + pid);
    FirstPage page;
    AddOutsidePage(run, seen, &page);
    return LineOf(page, "limit") + "\n" + Advice(run, seen);
  };
  EXPECT_THAT(page(OutsideLimit::kProducers, 180),
              HasSubstr("processes, started again and again (prob"));
  EXPECT_THAT(page(OutsideLimit::kProducers, 180), HasSubstr("let each process do more before"));
  EXPECT_THAT(page(OutsideLimit::kCores, 180), HasSubstr("let each process do more before"));
  EXPECT_THAT(page(OutsideLimit::kProducers, 30), Not(HasSubstr("again")));
  EXPECT_THAT(page(OutsideLimit::kCores, 30), Not(HasSubstr("let each process")));
}

// A pool has one thread for its tasks and one for its results, whatever they cost.
TEST(OutsideWords, APoolsThreadsHandOver) {
  const analysis::RunView run = LimitedByWorkers();
  const auto page = [&](double pool_ratio, double threads, double others_work = 0) {
    Outside seen = analysis::LookFromOutside(run);
    seen.findings = {{OutsideLimit::kProducers, 0.95}};
    seen.units[seen.culprit].kind = seen.units[0].kind;
    seen.units[seen.culprit].threads_count = threads;
    seen.groups[seen.units[seen.culprit].key_group].thread = seen.kinds[seen.units[0].kind].name;
    seen.home_activity.emplace().pool_ratio = pool_ratio;
    seen.home_activity->works_beside_pool = others_work;
    seen.home_activity->samples_count = 90;
    FirstPage page;
    AddOutsidePage(run, seen, &page);
    return LineOf(page, "limit") + "\n" + Advice(run, seen);
  };
  EXPECT_THAT(page(0.95, 2.2),
              HasSubstr("handing over tasks and results, in the threads of the trainer's Pool"));
  EXPECT_THAT(page(0.95, 2.2),
              HasSubstr("several items for each task (chunksize of imap and map)"));
  EXPECT_THAT(page(0.3, 2.2), Not(HasSubstr("handing over"))) << "the program has others";
  EXPECT_THAT(page(0.95, 8), Not(HasSubstr("chunksize"))) << "some were not sampled";
  EXPECT_THAT(page(0.75, 2.2, 0.9), Not(HasSubstr("chunksize"))) << "one beside it is at work";
}

// Workers that ask a process of the program for what they need, such as a Manager's.
TEST(OutsideWords, WhomWorkersAskIsNamed) {
  const auto page = [](double asking, bool answers = true) {
    analysis::OutsideRun run(10, 1.3);
    run.Process(100, 1, "python", "python train.py").Process(200, 100, "pt_data_worker");
    run.Process(300, 100, "keeper");
    run.OnCpu(100, "python (main)", 0.2);
    run.Waits(100, "python (main)", "poll", 0.79, "200/pt_data_worker (main)");
    run.OnCpu(200, "pt_data_worker (main)", 0.9 - asking);
    run.Waits(200, "pt_data_worker (main)", "pipe", asking, "300/keeper");
    run.Waits(200, "pt_data_worker (main)", "pipe", 0.03, "100/python (main)");
    run.OnCpu(300, "keeper", 0.4);
    if (answers) run.Waits(300, "keeper", "pipe", 0.58, "200/pt_data_worker (main)");
    if (!answers) run.Blocked(300, "keeper", "sleep", 0.58);
    const Outside seen = analysis::LookFromOutside(run.view);
    FirstPage page;
    AddOutsidePage(run.view, seen, &page);
    return LineOf(page, "limit") + "\n" + Advice(run.view, seen);
  };
  EXPECT_THAT(page(0.4), HasSubstr(" of its time it waits for answers of process keeper (300)"));
  EXPECT_THAT(page(0.4), HasSubstr("fewer and larger exchanges with process keeper (300); or "));
  EXPECT_THAT(page(0.1), Not(HasSubstr("answers of")));
  EXPECT_THAT(page(0.4, false), Not(HasSubstr("answers of"))) << "it feeds them";
}

// Limit, advice and what comes next, of a trainer that waits for two workers.
std::string PageOfWorkers(analysis::OutsideRun run) {
  const Outside seen = analysis::LookFromOutside(run.view);
  FirstPage page;
  AddOutsidePage(run.view, seen, &page);
  return LineOf(page, "limit") + "\n" + Advice(run.view, seen) + "\n" + LineOf(page, "next");
}

TEST(OutsideWords, MoreWorkersAreNotAdvisedWhereSomeHaveNothingToDo) {
  analysis::OutsideRun run = analysis::Loader(1, 0.12, 0.86, 0.93, 0, 0.05);
  for (analysis::ProcessRow& process : run.view.processes) process.cpu_ns = 9'000'000'000;
  EXPECT_THAT(PageOfWorkers(run), HasSubstr("num_workers 1 -> "));
  run.Process(201, 100, "python").Add("on_cpu_ns", 201, "pt_data_worker (main)", "", 0.001);
  run.view.processes.back().cpu_ns = 30'000'000;
  run.view.processes.back().ended_ns = 500'000'000;
  const std::string page = PageOfWorkers(run);
  EXPECT_THAT(page, HasSubstr("divide the data into as many shards as there are workers (1 of 2 "
                              "had nothing to do"));
  EXPECT_THAT(page, Not(HasSubstr("num_workers")));
  EXPECT_THAT(page, HasSubstr("the workers will still limit it, at some 2.0 times this rate"));
}

TEST(OutsideWords, WhoTakesTheCoresIsNamed) {
  analysis::OutsideRun run = analysis::Loader(1, 0.1, 0.85, 0.2, 0, 0.3, 3.0);
  run.Runnable(200, "pt_data_worker (main)", 0.5);
  for (const int64_t pid : {300, 301, 302}) {
    run.Process(pid, 100, "zip").OnCpu(pid, "zip (main)", 0.9);
  }
  const std::string page = PageOfWorkers(run);
  EXPECT_THAT(page, HasSubstr("CPU cores, mostly used by 3 processes zip (probability "));
  EXPECT_THAT(page, HasSubstr(" hardly gets one"));
  EXPECT_THAT(page, HasSubstr("keep 3 processes zip off these cores"));
}

// What a pool's processes are sent with each task they unpickle.
TEST(OutsideWords, WhatIsSentWithEachTaskIsTheWork) {
  const auto page = [](const char* loop) {
    analysis::OutsideRun run(10, 1.3);
    run.Process(100, 1, "python", "python train.py").Process(200, 100, "python");
    run.OnCpu(100, "python (main)", 0.1);
    run.Waits(100, "python (main)", "pipe", 0.89, "200/python (main)");
    run.OnCpu(200, "python (main)", 0.9);
    run.Waits(200, "python (main)", "pipe", 0.05, "100/python (main)");
    analysis::StackRow row;
    row.kind = "python";
    row.process_id = 200;
    row.thread = "MainThread";
    row.folded = std::string("MainThread;BaseProcess.run (multiprocessing/process.py:108);") +
                 loop + ";Queue.get (multiprocessing/queues.py:122)";
    row.samples_count = 90;
    row.time_ns = 9'000'000'000;
    run.view.stacks.push_back(row);
    return PageOfWorkers(run);
  };
  const std::string pool = page("_process_worker (concurrent/futures/process.py:249)");
  EXPECT_THAT(pool, HasSubstr("unpickling in "));
  EXPECT_THAT(pool, HasSubstr("send less with each task"));
  EXPECT_THAT(page("produce (train.py:20, loop 19)"), Not(HasSubstr("each task")));
}

// Threads of a pool that mostly have nothing to do are enough of them.
TEST(OutsideWords, MoreOfIdleThreadsAreNotAdvised) {
  const analysis::RunView run = LimitedByWorkers();
  const auto fix = [&](double on_cpu, bool of_home, double storage = 0) {
    Outside seen = analysis::LookFromOutside(run);
    seen.findings = {{OutsideLimit::kProducers, 0.95}};
    seen.flavour = analysis::OutsideFlavour::kPlain;
    analysis::OutsideUnit& unit = seen.units[seen.culprit];
    if (of_home) unit.kind = seen.units[0].kind;
    unit.threads_count = 7;
    unit.shares = {};
    unit.shares.on_cpu = on_cpu;
    unit.shares.storage = storage;
    unit.shares.other = 1 - on_cpu - storage;
    return Advice(run, seen);
  };
  EXPECT_THAT(fix(0.16, true),
              HasSubstr("These threads compute 16.0 % of their time. Something may"));
  EXPECT_THAT(fix(0.6, true), Not(HasSubstr("one at a time")));
  EXPECT_THAT(fix(0.16, false), Not(HasSubstr("one at a time"))) << "processes";
  EXPECT_THAT(fix(0.16, true, 0.3), Not(HasSubstr("one at a time"))) << "they wait for a store";
}

TEST(OutsideWords, EachLimitHasItsName) {
  const analysis::RunView run = LimitedByWorkers();
  const Outside workers = analysis::LookFromOutside(run);
  const auto name = [&](OutsideLimit limit, void (*change)(Outside*) = nullptr) {
    Outside seen = workers;
    seen.findings = {{limit, 0.95}};
    if (change != nullptr) change(&seen);
    FirstPage page;
    AddOutsidePage(run, seen, &page);
    const std::string line = LineOf(page, "limit");
    return line.substr(0, line.find(" (probability"));
  };
  const auto consumer = [](Outside* seen) { seen->culprit = 0; };
  EXPECT_EQ(name(OutsideLimit::kProducers), "the workers");
  EXPECT_EQ(name(OutsideLimit::kProducers, consumer), "the threads that feed it");
  EXPECT_EQ(
      name(OutsideLimit::kProducers,
           [](Outside* seen) { seen->compute_place = "recv (multiprocessing/connection.py:250)"; }),
      "unpickling in the workers");
  EXPECT_EQ(name(OutsideLimit::kProducers,
                 [](Outside* seen) {
                   seen->is_busy_thread = true;
                   seen->python_threads.emplace().busy_thread = "packer";
                 }),
            "another thread of the trainer's process, packer");
  EXPECT_EQ(name(OutsideLimit::kProducers,
                 [](Outside* seen) {
                   seen->is_busy_thread = true;
                   analysis::PythonThreads& threads = seen->python_threads.emplace();
                   threads.busy_thread = "python";
                   threads.busy_function = "Pool._handle_results (multiprocessing/pool.py:579)";
                 }),
            "another thread of the trainer's process, in Pool._handle_results "
            "(multiprocessing/pool.py:579), which unpickles what the pool's processes return");
  EXPECT_EQ(name(OutsideLimit::kProducers,
                 [](Outside* seen) {
                   seen->units[seen->culprit].uneven = analysis::UnevenProcesses{2, 200, 0.9, 0.2};
                 }),
            "the slowest of the workers");
  EXPECT_EQ(name(OutsideLimit::kProducers,
                 [](Outside* seen) { seen->workers.emplace().start_ratio = 0.8; }),
            "the start of the workers");
  EXPECT_EQ(name(OutsideLimit::kCores), "CPU cores");
  EXPECT_EQ(name(OutsideLimit::kCores,
                 [](Outside* seen) {
                   seen->core_budget.quota = analysis::CpuQuota{0.5, 0.3};
                 }),
            "the CPU quota of 0.50 cores");
  EXPECT_EQ(name(OutsideLimit::kCores, [](Outside* seen) { seen->units[0].shares.runnable = 0.9; }),
            "a CPU quota, or a set of cores, that holds it back");
  EXPECT_EQ(name(OutsideLimit::kStorage), "storage");
  EXPECT_EQ(name(OutsideLimit::kNetwork), "the network, or the server it leads to");
  EXPECT_EQ(name(OutsideLimit::kInterpreter), "the lock of Python's interpreter (GIL)");
  EXPECT_EQ(name(OutsideLimit::kLock), "a lock");
  EXPECT_EQ(name(OutsideLimit::kSleep), "a timer");
  EXPECT_EQ(name(OutsideLimit::kConsumer), "the trainer");
  EXPECT_EQ(
      name(OutsideLimit::kConsumer, [](Outside* seen) { seen->units[0].shares.on_cpu = 0.9; }),
      "the trainer's thread: its step, or sampling or unpickling in it");
  EXPECT_EQ(name(OutsideLimit::kConsumer,
                 [](Outside* seen) {
                   seen->flavour = analysis::OutsideFlavour::kPlain;
                   seen->units[0].shares.on_cpu = 0.9;
                 }),
            "the consumer's thread: its step, or loading in it");
  EXPECT_EQ(name(OutsideLimit::kPauses), "pauses of the workers");
  EXPECT_EQ(name(OutsideLimit::kPauses, consumer), "pauses of those who feed it");
  EXPECT_EQ(name(OutsideLimit::kOwnWork,
                 [](Outside* seen) { seen->python.emplace().function = "load (train.py:12)"; }),
            "the trainer's own thread, loading in load, train.py:12");
  // As words beside others, where no unit is named.
  EXPECT_EQ(workers.LimitWord(OutsideLimit::kOwnWork), "the trainer's own thread");
  EXPECT_EQ(workers.LimitWord(OutsideLimit::kAlone), "one thread that loads and computes in turn");
  EXPECT_EQ(workers.LimitWord(OutsideLimit::kNone), "nothing that was seen");
}

// The lines "fix" of pages without a verdict, by what the run was.
TEST(PagesWithoutAVerdict, SayWhatToRecord) {
  const auto text = [](const analysis::RunView& run) {
    std::string all;
    for (const PageLine& line : MakeFirstPage(run, analysis::MakeStatements(run)).lines)
      all += line.text + "\n";
    return all;
  };
  analysis::RunView run = analysis::Record(DecodeLimits(), 0.1, 3);
  run.run.pipeline_path = "p.toml";
  EXPECT_THAT(text(run), HasSubstr("Record it for longer:\n"));
  EXPECT_THAT(text(run), HasSubstr(" run p.toml --duration 10s"));
  run.run.pipeline_path.clear();
  EXPECT_THAT(text(run), HasSubstr("Record it while it takes batches.\n"));
  run.run.kind = "ceiling";
  EXPECT_THAT(text(run), HasSubstr("record the pipeline itself, with the same settings"));
  analysis::SiblingRow whole;
  whole.run_id = 4;
  whole.kind = "pipeline";
  run.siblings.push_back(whole);
  EXPECT_THAT(text(run), HasSubstr("this run repeats one batch; read the full run:\n"));
  EXPECT_THAT(text(run), HasSubstr(" report 4"));
}

TEST(LossWords, OfWhatTheRecorderCounts) {
  const struct {
    const char* what;
    const char* affected;
  } kCases[] = {
      {"offcpu: run queue waits", "run-queue latency: too few waits"},
      {"offcpu: thread times", "CPU time by thread (Threads): too low"},
      {"follow: processes", "children of the target: their figures by eBPF missing"},
      {"off_cpu_stack: copies", "off-CPU stacks: more of them truncated"},
      {"cpu_stack: samples", "CPU stacks: too few samples, or stacks without names"},
      {"block_io: histogram rows", "histograms of block requests: too low"},
      {"file_io: pages", "page cache and read-ahead by operator: too low"},
      {"socket: softirqs", "softirq time: too low"},
      {"socket: calls", "network by socket and operator: too low"},
      {"fork events", "Processes: short-lived ones missing"},
      {"processes over the limit", "Processes: some missing, their figures are the root's"},
      {"operators over the limit", "operators, queues and resources beyond the limit: not listed"},
      {"ring seconds beyond its memory", "detail around stalls: shorter than asked"},
      {"ranges of detail released", "detail around stalls: the oldest ranges given up"},
      {"stacks beyond the limit of a run", "stacks: some missing"},
      {"measurements beyond the limit of a run", "figures beyond the limit of a run: missing"}};
  for (const auto& each : kCases) EXPECT_EQ(AffectedBy(each.what), each.affected) << each.what;
}

// Go moves goroutines between threads: what these wait for each other says nothing.
TEST(OutsideWords, AGoroutineThatWaitsForStorageIsNamed) {
  analysis::RunView run = LimitedByWorkers();
  Outside seen = analysis::LookFromOutside(run);
  seen.findings = {{OutsideLimit::kStorage, 0.75}};
  seen.decided = true;
  seen.culprit = 0;
  seen.activity_place = "main.save, os.(*File).Sync";
  seen.goroutines.emplace().storage = {0.6, "runtime.main", true, 0.2, seen.activity_place};
  for (const char* metric : {"block_requests_count", "block_latency_ns"}) {
    for (const auto& [direction, value] : {std::pair{"read", 1.0}, std::pair{"write", 900.0}}) {
      analysis::MeasurementRow row;
      row.metric = metric;
      row.cause = direction;
      row.value = value;
      run.measurements.push_back(row);
    }
  }
  const analysis::RunView of_others = run;
  for (analysis::MeasurementRow& row : run.measurements) row.process_id = 100;
  FirstPage beside_others;
  AddOutsidePage(of_others, seen, &beside_others);
  EXPECT_THAT(LineOf(beside_others, "fix"), HasSubstr("larger or fewer reads"));
  FirstPage page;
  AddOutsidePage(run, seen, &page);
  EXPECT_EQ(page.badge, "GOROUTINES");
  EXPECT_THAT(page.verdict, HasSubstr("main goroutine waits for storage 60.0 % of the time"));
  EXPECT_THAT(LineOf(page, "limit"), HasSubstr("in main.save, os.(*File).Sync"));
  EXPECT_THAT(LineOf(page, "fix"), HasSubstr("force them to the disk less often"));
  EXPECT_EQ(LineOf(page, "next"), "");
  seen.goroutines->storage = {0.6, "main.feed", false, 0.3, ""};
  FirstPage other;
  AddOutsidePage(run, seen, &other);
  EXPECT_THAT(other.verdict, HasSubstr("Goroutines of main.feed wait for storage, 0.6 of them"));
}

// Its sleeps end no wait of others, and are one.
TEST(OutsideWords, AConsumerThatPollsIsNotSaidToKeepUp) {
  const analysis::RunView run = LimitedByWorkers();
  const auto page = [&](double sleeps, double stall) {
    Outside seen = analysis::LookFromOutside(run);
    seen.findings = {{OutsideLimit::kSleep, 0.9}};
    seen.units[0].shares.sleep = sleeps;
    seen.stall_ratio = stall;
    FirstPage first;
    AddOutsidePage(run, seen, &first);
    return first;
  };
  EXPECT_EQ(page(0.98, 0.001).badge, "SLEEPING");
  EXPECT_THAT(page(0.98, 0.001).verdict, HasSubstr("sleeps 98.0 % of the time, by a timer"));
  EXPECT_EQ(page(0.2, 0.001).badge, "NOT input-bound");
  EXPECT_EQ(page(0.98, 0.6).badge, "HIGHLY input-bound");
}

TEST(OutsideWords, GarbageCollectionIsCalledSo) {
  const analysis::RunView run = LimitedByWorkers();
  Outside seen = analysis::LookFromOutside(run);
  seen.findings = {{OutsideLimit::kCollector, 0.9}};
  FirstPage page;
  AddOutsidePage(run, seen, &page);
  EXPECT_EQ(page.badge, "GARBAGE COLLECTION");
  EXPECT_THAT(LineOf(page, "limit"), HasSubstr("garbage collection"));
  EXPECT_THAT(LineOf(page, "fix"), HasSubstr("-Xmx"));
}

}  // namespace
}  // namespace headrace::dashboards
