// What Python threads are at, by their sampled stacks, and what that says where the kernel knows
// them by one name.
#include "analysis/outside/python_activity.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "analysis/outside/outside.h"
#include "tests/analysis/outside_run.h"

namespace headrace::analysis {
namespace {

constexpr const char* kThread =
    "Thread._bootstrap (threading.py:1002);Thread.run (threading.py:982);";
const std::string kTask = std::string(kThread) +
                          "_worker (concurrent/futures/thread.py:83);_WorkItem.run "
                          "(concurrent/futures/thread.py:58);";

TEST(PythonActivity, TheInnermostFramesSayWhatAThreadIsAt) {
  const std::pair<std::string, Activity> stacks[] = {
      {std::string(kThread) + "_worker (concurrent/futures/thread.py:81)", Activity::kIdle},
      {kTask + "fetch (load.py:29, no loop);HTTPConnection.getresponse (http/client.py:1386);"
               "HTTPResponse._read_status (http/client.py:286);SocketIO.readinto (socket.py:706)",
       Activity::kNetwork},
      {kTask + "fetch (load.py:29);SSLSocket.read (ssl.py:1166)", Activity::kNetwork},
      {kTask + "parse (load.py:40, loop 39)", Activity::kWorks},
      {kTask + "fetch (load.py:31, no loop, sleeps)", Activity::kSleeps},
      {kTask + "fetch (load.py:31, no loop, locks)", Activity::kLocks},
      {kTask + "fetch (load.py:31);Buffers.acquire (load.py:66, no loop)", Activity::kWorks},
      {kTask + "fetch (load.py:31);Semaphore.acquire (threading.py:470);Condition.wait "
               "(threading.py:327)",
       Activity::kLocks},
      {std::string(kThread) + "_populate_queue (torchdata/nodes/_populate_queue.py:71);"
                              "Semaphore.acquire (threading.py:479);Condition.wait "
                              "(threading.py:331)",
       Activity::kWaitsForRoom},
      {"worker (multiprocessing/pool.py:114);_PoolTasks.get (headrace/_pools.py:147);"
       "SimpleQueue.get (multiprocessing/queues.py:366);"
       "Connection._recv (multiprocessing/connection.py:395)",
       Activity::kIdle},
      {kTask + "fetch (load.py:31);BaseFileLock.acquire (filelock/_api.py:330)", Activity::kLocks},
      {std::string(kThread) + "fill (load.py:9);Queue.put (queue.py:140);Condition.wait "
                              "(threading.py:327)",
       Activity::kWaitsForRoom},
      {std::string(kThread) + "fill (load.py:8);Queue.get (queue.py:171);Condition.wait "
                              "(threading.py:327)",
       Activity::kWaitsForOthers},
      {std::string(kThread) + "fill (load.py:8);Future.result (concurrent/futures/_base.py:451);"
                              "Condition.wait (threading.py:327)",
       Activity::kWaitsForOthers},
      {std::string(kThread) + "BaseEventLoop.run_forever (asyncio/base_events.py:607);"
                              "BaseEventLoop._run_once (asyncio/base_events.py:1884);"
                              "EpollSelector.select (selectors.py:468)",
       Activity::kEvents},
      {std::string(kThread) + "BaseServer.serve_forever (socketserver.py:233);"
                              "_PollLikeSelector.select (selectors.py:415)",
       Activity::kIdle},
      {"worker (multiprocessing/pool.py:114);SimpleQueue.get (multiprocessing/queues.py:366);"
       "SemLock.__enter__ (multiprocessing/synchronize.py:95)",
       Activity::kIdle},
      {"read (train.py:9, no loop);SemLock.__enter__ (multiprocessing/synchronize.py:95)",
       Activity::kLocks},
      {std::string(kThread) +
           "iter_threaded.<locals>._acquire_slot (ray/data/_internal/block_batching/util.py:103);"
           "Semaphore.acquire (threading.py:479);Condition.wait (threading.py:331)",
       Activity::kWaitsForOthers},
      {"put (queue.py:9, no loop)", Activity::kWorks},
      // It unpickles; while it waits for the pipe it is in a function below.
      {std::string(kThread) + "_ExecutorManagerThread.run (concurrent/futures/process.py:350);"
                              "_ConnectionBase.recv (multiprocessing/connection.py:251)",
       Activity::kWorks},
      {std::string(kThread) + "Queue._feed (multiprocessing/queues.py:231);Condition.wait "
                              "(threading.py:327)",
       Activity::kIdle},
      {std::string(kThread) + "Queue._feed (multiprocessing/queues.py:244);ForkingPickler.dumps "
                              "(multiprocessing/reduction.py:51)",
       Activity::kHandsOver},
      {std::string(kThread) + "Queue._feed (multiprocessing/queues.py:250);"
                              "_ConnectionBase.send_bytes (multiprocessing/connection.py:200);"
                              "Connection._send (multiprocessing/connection.py:384)",
       Activity::kHandsOver},
      {"make (load.py:9);_ConnectionBase.send (multiprocessing/connection.py:206);"
       "Connection._send_bytes (multiprocessing/connection.py:427);"
       "Connection._send (multiprocessing/connection.py:384)",
       Activity::kHandsOver},
      {std::string(kThread) + "join (load.py:3);Event.wait (threading.py:629);Condition.wait "
                              "(threading.py:331)",
       Activity::kWaitsForOthers}};
  for (const auto& [folded, activity] : stacks) {
    EXPECT_EQ(ActivityOf(FramesOf(folded)), activity) << folded;
  }
}

// A trainer that waits `stall` of its time for eight threads of one name; each waits for the
// network or sleeps for a small part of its time, and else for the others or the trainer.
OutsideRun Pool(double stall, const std::string& cause, double share, double computes = 0.01) {
  OutsideRun run(10, 0.5);
  run.Process(100, 1, "python", "python train.py");
  run.OnCpu(100, "python (main)", 1 - stall);
  run.Waits(100, "python (main)", "lock", stall, "100/python");
  for (int t = 0; t < 8; ++t) {
    run.OnCpu(100, "python", computes);
    run.Blocked(100, "python", cause, share);
    run.Waits(100, "python", "lock", 0.4, "100/python");
    run.Waits(100, "python", "lock", 0.6 - computes - share, "100/python (main)");
  }
  return run;
}

RunView WithPoolStacks(RunView view, const std::string& task, double at_task_s) {
  Sample("MainThread",
         "main (train.py:30, loop 28);Future.result (concurrent/futures/_base.py:451);"
         "Condition.wait (threading.py:327)",
         9.5, &view);
  Sample("ThreadPoolExecutor-0", std::string(kThread) + "_worker (concurrent/futures/thread.py:81)",
         80 - at_task_s, &view);
  Sample("ThreadPoolExecutor-0", kTask + task, at_task_s, &view);
  return view;
}

// Of the eight threads, one at a time waits for the server, and the others have nothing to do.
TEST(PythonActivity, OneThatWaitsForAServerAmongIdleOnesIsTheLimit) {
  const RunView blind = Pool(0.94, "network", 0.12).view;
  const std::string fetch =
      "fetch (train.py:9, no loop);HTTPConnection.getresponse (http/client.py:1386);"
      "SocketIO.readinto (socket.py:706)";
  EXPECT_EQ(LookFromOutside(blind).findings[0].limit, OutsideLimit::kLock) << "they look alike";
  const Outside seen = LookFromOutside(WithPoolStacks(blind, fetch, 9.8));
  EXPECT_TRUE(seen.decided);
  EXPECT_EQ(seen.findings[0].limit, OutsideLimit::kNetwork);
  EXPECT_LE(seen.findings[0].probability, 0.75);
  EXPECT_EQ(seen.activity_place, "fetch (train.py:9)");
  double sum = 0;
  for (const OutsideFinding& finding : seen.findings) sum += finding.probability;
  EXPECT_LE(sum, 1.0001);
  // Polls with a time limit are waits for it, too.
  const Outside polls = LookFromOutside(WithPoolStacks(Pool(0.94, "poll", 0.12).view, fetch, 9.8));
  EXPECT_EQ(polls.findings[0].limit, OutsideLimit::kNetwork);
  // Where one computes all the time, those that the kernel sees at no socket are back from it.
  const Outside back =
      LookFromOutside(WithPoolStacks(Pool(0.94, "sleep", 0.12, 0.125).view, fetch, 9.8));
  EXPECT_EQ(back.findings[0].limit, OutsideLimit::kProducers);
  // Where hardly any thread was seen at it, nothing is said by the stacks.
  EXPECT_TRUE(LookFromOutside(WithPoolStacks(blind, fetch, 2)).activity_place.empty());
}

// A child that puts arrays into a queue: it makes one in `makes` of the time, and else waits for
// room, while a thread of its own packs and sends what it has made.
Outside WithQueue(double makes) {
  OutsideRun run(10, 1.2);
  run.Process(100, 1, "python", "python train.py").OnCpu(100, "python (main)", 0.2);
  run.Waits(100, "python (main)", "pipe", 0.78, "200/python");
  run.Process(200, 100, "python", "python train.py").OnCpu(200, "python (main)", makes);
  run.Waits(200, "python (main)", "lock", 1 - makes, "200/python");
  run.OnCpu(200, "python", 0.6).Waits(200, "python", "pipe", 0.38, "100/python (main)");
  Sample("MainThread",
         "main (train.py:30, loop 28);Queue.get (multiprocessing/queues.py:103);"
         "Connection._recv (multiprocessing/connection.py:395)",
         9, &run.view);
  const auto child = [&](const std::string& thread, const std::string& frames, double seconds) {
    Sample(thread, frames, seconds, &run.view);
    run.view.stacks.back().process_id = 200;
  };
  const std::string start = "collect (train.py:20, loop 18)";
  child("MainThread", start + ";Queue.put (multiprocessing/queues.py:89)", 10 * (1 - makes));
  child("MainThread", start, 10 * makes);
  const std::string feed = std::string(kThread) + "Queue._feed (multiprocessing/queues.py:250);";
  const double sends = 9.5 * (1 - makes);
  child("QueueFeederThread", feed + "Connection._send (multiprocessing/connection.py:384)", sends);
  child("QueueFeederThread", feed + "Condition.wait (threading.py:327)", 10 - sends);
  return LookFromOutside(run.view);
}

// The kernel sees a wait with a time limit, Python a step: CPython waits for its lock so.
TEST(PythonActivity, AStepThatWaitsBesideAnotherThreadsWorkIsForTheInterpreter) {
  const auto limit = [](double works_s, const std::string& step) {
    OutsideRun run(10, 1.2);
    run.Process(100, 1, "python", "python train.py").OnCpu(100, "python (main)", 0.15);
    run.Blocked(100, "python (main)", "sleep", 0.8);
    run.OnCpu(100, "python", 0.8).Waits(100, "python", "lock", 3, "100/python");
    Sample("MainThread", step, 10, &run.view);
    Sample("collator", std::string(kThread) + "collate (train.py:9, loop 8)", works_s, &run.view);
    Sample("collator", std::string(kThread) + "Condition.wait (threading.py:327)", 10 - works_s,
           &run.view);
    return LookFromOutside(run.view).findings[0];
  };
  const std::string step = "main (train.py:30, loop 28);Tensor.backward (torch/_tensor.py:630)";
  EXPECT_EQ(limit(8, step).limit, OutsideLimit::kInterpreter);
  EXPECT_LE(limit(8, step).probability, 0.75);
  EXPECT_NE(limit(1, step).limit, OutsideLimit::kInterpreter);
  EXPECT_NE(limit(8, "main (train.py:30, loop 28, sleeps)").limit, OutsideLimit::kInterpreter);
}

TEST(PythonActivity, WhoPacksAndSendsWhatOthersWaitForIsNamed) {
  const Outside seen = WithQueue(0.1);
  EXPECT_EQ(seen.findings[0].limit, OutsideLimit::kHandOver);
  EXPECT_EQ(seen.units[seen.culprit].name, "process python (200)");
  EXPECT_TRUE(seen.decided);
  EXPECT_NE(WithQueue(0.9).findings[0].limit, OutsideLimit::kHandOver) << "it is the making";
}

// A child whose main thread writes into a pipe all the time, of which the trainer reads for `takes`
// of its time, and is else in its step.
Outside WithPipe(double takes) {
  OutsideRun run(10, 1.2);
  run.Process(100, 1, "python", "python train.py").OnCpu(100, "python (main)", 0.98 - takes);
  run.Waits(100, "python (main)", "pipe", takes, "200/python (main)");
  run.Process(200, 100, "python", "python train.py").OnCpu(200, "python (main)", 0.2);
  run.Waits(200, "python (main)", "pipe", 0.78, "100/python (main)");
  Sample("MainThread",
         "main (train.py:30, loop 28);_ConnectionBase.recv (multiprocessing/connection.py:250);"
         "Connection._recv (multiprocessing/connection.py:395)",
         10 * takes, &run.view);
  Sample("MainThread", "main (train.py:31, loop 28);Tensor.backward (torch/_tensor.py:630)",
         10 - 10 * takes, &run.view);
  Sample("MainThread",
         "make (train.py:9, loop 8);_ConnectionBase.send (multiprocessing/connection.py:206);"
         "Connection._send (multiprocessing/connection.py:384)",
         9, &run.view);
  run.view.stacks.back().process_id = 200;
  return LookFromOutside(run.view);
}

TEST(PythonActivity, AFullPipeIsAHandOverOnlyIfItIsAwaited) {
  EXPECT_EQ(WithPipe(0.9).findings[0].limit, OutsideLimit::kHandOver);
  EXPECT_EQ(WithPipe(0.1).findings[0].limit, OutsideLimit::kConsumer);
}

// A Pool of two processes, which wait for tasks and for each other's reading of them; the trainer's
// thread that sends tasks is at it for `sends` of the time.
Outside WithTasks(double sends) {
  OutsideRun run(10, 1.2);
  run.Process(100, 1, "python", "python train.py").OnCpu(100, "python (main)", 0.07);
  run.Waits(100, "python (main)", "lock", 0.91, "100/python");
  run.OnCpu(100, "python", 0.3).Waits(100, "python", "pipe", 0.65, "200/python (main)");
  for (const int64_t pid : {200, 201}) {
    const std::string other = pid == 200 ? "201/python (main)" : "200/python (main)";
    run.Process(pid, 100, "python", "python train.py").OnCpu(pid, "python (main)", 0.3);
    run.Waits(pid, "python (main)", "lock", 0.4, other);
    run.Waits(pid, "python (main)", "pipe", 0.27, "100/python");
    Sample("MainThread",
           "worker (multiprocessing/pool.py:114);SimpleQueue.get (multiprocessing/queues.py:365);"
           "Connection._recv (multiprocessing/connection.py:395)",
           9, &run.view);
    run.view.stacks.back().process_id = pid;
  }
  Sample("MainThread",
         "main (train.py:30, loop 28);IMapIterator.next (multiprocessing/pool.py:861);"
         "Condition.wait (threading.py:327)",
         9, &run.view);
  std::string handles = std::string(kThread) + "Pool._handle_tasks (multiprocessing/pool.py:540);";
  Sample("Thread (_handle_tasks)",
         handles +
             "_ConnectionBase.send (multiprocessing/connection.py:206);"
             "ForkingPickler.dumps (multiprocessing/reduction.py:51)",
         9 * sends, &run.view);
  handles.pop_back();
  Sample("Thread (_handle_tasks)", handles, 9 * (1 - sends), &run.view);
  return LookFromOutside(run.view);
}

TEST(PythonActivity, LargeTasksOfAPoolAreAHandOver) {
  EXPECT_EQ(WithTasks(0.9).findings[0].limit, OutsideLimit::kHandOver);
  EXPECT_NE(WithTasks(0.2).findings[0].limit, OutsideLimit::kHandOver);
}

TEST(PythonActivity, AMultiprocessingPoolsThreadsAreKnown) {
  RunView run = OutsideRun(10, 1).Process(100, 1, "python").view;
  Sample("MainThread", "main (train.py:30, loop 28)", 9, &run);
  const std::string send = "_ConnectionBase.send (multiprocessing/connection.py:206)";
  Sample("Thread (_handle_tasks)", "Pool._handle_tasks (multiprocessing/pool.py:540);" + send, 6,
         &run);
  Sample("watch", "look (train.py:9, no loop)", 2, &run);
  EXPECT_DOUBLE_EQ(LookAtActivity(run, {100})->pool_ratio, 0.75);
  EXPECT_DOUBLE_EQ(LookAtActivity(run, {100})->works_beside_pool, 2.0 / 9);
}

// A feeder without anything to do says nothing of what the others are at.
TEST(PythonActivity, AnExecutorsThreadsAreKnown) {
  RunView run = OutsideRun(10, 1).Process(100, 1, "python").view;
  Sample("MainThread", "main (train.py:30, loop 28)", 9, &run);
  const std::string manages = "_ExecutorManagerThread.run (concurrent/futures/process.py:344);";
  Sample("Thread", manages + "_ConnectionBase.recv (multiprocessing/connection.py:251)", 5, &run);
  Sample("Thread", manages + "wait (multiprocessing/connection.py:947)", 4, &run);
  Sample("QueueFeederThread",
         "Queue._feed (multiprocessing/queues.py:231);Condition.wait (threading.py:327)", 9, &run);
  EXPECT_DOUBLE_EQ(LookAtActivity(run, {100})->pool_ratio, 1);
  Sample("watch", "look (train.py:9, no loop)", 3, &run);
  EXPECT_DOUBLE_EQ(LookAtActivity(run, {100})->pool_ratio, 0.75);
}

TEST(PythonActivity, WhoSleepsOrWaitsAtALockIsNamedByItsLine) {
  const RunView blind = Pool(0.9, "sleep", 0.12).view;
  const Outside sleeps =
      LookFromOutside(WithPoolStacks(blind, "pace (train.py:7, no loop, sleeps)", 9.5));
  EXPECT_EQ(sleeps.findings[0].limit, OutsideLimit::kSleep);
  EXPECT_EQ(sleeps.activity_place, "pace (train.py:7)");
  const Outside locks =
      LookFromOutside(WithPoolStacks(blind, "read (train.py:7, no loop, locks)", 9.5));
  EXPECT_EQ(locks.findings[0].limit, OutsideLimit::kLock);
}

// An event loop waits for sockets and timers alike; which of them ends its waits the kernel knows.
TEST(PythonActivity, AnEventLoopThatTimersWakeIsPaced) {
  const auto loop = [](double timed_out) {
    OutsideRun run(10, 0.4);
    run.Process(100, 1, "python", "python train.py").OnCpu(100, "python (main)", 0.15);
    run.Waits(100, "python (main)", "lock", 0.84, "100/python");
    run.OnCpu(100, "python", 0.03).Blocked(100, "python", "poll", 0.75);
    run.Add("poll_timed_out_ns", 100, "python", "", timed_out);
    run.Waits(100, "python", "lock", 0.2, "100/python (main)");
    run.view.receiving_ns[100] = run.view.run.duration_ns;
    Sample("MainThread",
           "main (train.py:30, loop 28);Queue.get (queue.py:171);Condition.wait "
           "(threading.py:327)",
           9.5, &run.view);
    Sample("captions",
           std::string(kThread) +
               "BaseEventLoop.run_forever (asyncio/base_events.py:607);"
               "BaseEventLoop._run_once (asyncio/base_events.py:1884);"
               "EpollSelector.select (selectors.py:468)",
           9.5, &run.view);
    return LookFromOutside(run.view).findings[0].limit;
  };
  EXPECT_EQ(loop(0.7), OutsideLimit::kSleep);
  EXPECT_EQ(loop(0.1), OutsideLimit::kNetwork);
}

// A thread that TensorFlow started has the program's name. It runs Python all the time, while the
// times of all threads of that name look like a lock's.
TEST(PythonActivity, AThreadAtWorkIsNamedByItsFunction) {
  OutsideRun run(10, 1.1);
  run.Process(100, 1, "python", "python train.py");
  run.OnCpu(100, "python (main)", 0.1);
  run.Waits(100, "python (main)", "lock", 0.9, "100/python");
  for (int t = 0; t < 4; ++t) {
    run.OnCpu(100, "python", 0.22);
    run.Waits(100, "python", "lock", 0.4, "100/python");
    run.Waits(100, "python", "lock", 0.38, "100/python (main)");
  }
  RunView view = run.view;
  Sample("MainThread", "main (train.py:30, loop 28);fit (keras/src/trainers/x.py:7)", 9.5, &view);
  Sample("python",
         "FuncRegistry.__call__ (tensorflow/python/ops/script_ops.py:269);"
         "draw (train.py:9, no loop)",
         9, &view);
  const Outside seen = LookFromOutside(view);
  ASSERT_TRUE(seen.is_busy_thread);
  EXPECT_EQ(seen.findings[0].limit, OutsideLimit::kProducers);
  EXPECT_EQ(seen.python_threads->busy_function, "draw (train.py:9)");
}

// A recording that ends before the program has loaded its modules says nothing of a pipeline.
TEST(PythonActivity, AProgramThatStillLoadsItsModulesGetsNoVerdict) {
  const auto recorded = [](double imports_s, double trains_s) {
    OutsideRun run(6, 1.1);
    run.Process(100, 1, "python", "python train.py").OnCpu(100, "python (main)", 0.98);
    RunView view = run.view;
    Sample("MainThread",
           "<module> (train.py:1, no loop);_find_and_load (<frozen importlib._bootstrap>:1176)",
           imports_s, &view);
    Sample("MainThread", "main (train.py:30, loop 28);Tensor.backward (torch/_tensor.py:623)",
           trains_s, &view);
    return LookFromOutside(view).withheld;
  };
  EXPECT_NE(recorded(5.8, 0).find("loaded its modules"), std::string::npos);
  EXPECT_EQ(recorded(3, 2.8), "");
  EXPECT_EQ(recorded(0.4, 0), "") << "too few samples";
  EXPECT_EQ(recorded(2.4, 0), "") << "they ended with the first 2.4 of 6 s";
}

// Its step waits for its turn among threads of Python, one of which computes whenever it may.
TEST(PythonActivity, ATrainerThatWaitsForTheInterpreterIsNotHeldUpByABusyThread) {
  const auto limit = [](double turn) {
    OutsideRun run(10, 1.1);
    run.Process(100, 1, "python", "python train.py");
    run.OnCpu(100, "python (main)", 0.2);
    run.Waits(100, "python (main)", "lock", 0.14, "100/python");
    run.Blocked(100, "python (main)", "sleep", 0.65);
    run.OnCpu(100, "python", 0.8).Blocked(100, "python", "sleep", 0.2);
    run.Waits(100, "python", "lock", 2.9, "100/python (main)");
    RunView view = run.view;
    Sample("MainThread", "main (train.py:30, loop 28);Tensor.backward (torch/_tensor.py:623)", 9.5,
           &view);
    Sample("fill", std::string(kThread) + "fill (train.py:9, no loop)", 9, &view);
    StackRow waits;
    waits.kind = "off_cpu";
    waits.process_id = waits.pid = 100;
    waits.folded = "python;[sleep];_start;__libc_start_main;take_gil;pthread_cond_timedwait";
    waits.time_ns = static_cast<int64_t>(turn * 1e10);
    waits.samples_count = 300;
    view.stacks.push_back(waits);
    waits.folded = "python;[sleep];_start;__libc_start_main;poll_device;clock_nanosleep";
    waits.time_ns = static_cast<int64_t>((0.65 - turn) * 1e10);
    view.stacks.push_back(waits);
    waits.folded = "python;[lock];_start;__libc_start_main;pthread_cond_wait";
    waits.time_ns = 1'400'000'000;
    view.stacks.push_back(waits);
    return LookFromOutside(view).findings[0].limit;
  };
  EXPECT_EQ(limit(0.6), OutsideLimit::kInterpreter);
  EXPECT_NE(limit(0.05), OutsideLimit::kInterpreter);
}

// Native stacks of a run-time's threads: convolutions are the step, Python functions that tf.data
// calls are loading.
RunView RunTime(double step_s, double loads_s, double trainer_waits) {
  OutsideRun run(10, 1.4);
  run.Process(100, 1, "python", "python train.py");
  run.OnCpu(100, "python (main)", 1 - trainer_waits);
  run.Waits(100, "python (main)", "lock", trainer_waits, "100/tf_Compute");
  for (int t = 0; t < 3; ++t) {
    run.OnCpu(100, "tf_Compute", (step_s + loads_s) / 30);
    run.Waits(100, "tf_Compute", "lock", 0.35, "100/tf_Compute");
    run.Waits(100, "tf_Compute", "lock", 0.2, "100/python (main)");
  }
  RunView view = run.view;
  const std::pair<std::string, double> stacks[] = {
      {"tf_Compute;start_thread;tsl::WorkerLoop;dnnl::impl::cpu::x64::jit_conv", step_s},
      {"tf_Compute;start_thread;tsl::WorkerLoop;tensorflow::PyFuncOp::Compute", loads_s}};
  for (const auto& [folded, seconds] : stacks) {
    StackRow row;
    row.kind = "cpu";
    row.process_id = 100;
    row.thread = "tf_Compute";
    row.folded = folded;
    row.samples_count = static_cast<int64_t>(49 * seconds);
    row.time_ns = static_cast<int64_t>(seconds * 1e9);
    if (seconds > 0) view.stacks.push_back(row);
  }
  return view;
}

TEST(NativeTime, ThreadsThatComputeTheStepAreTheTrainer) {
  const Outside seen = LookFromOutside(RunTime(13, 0.3, 0.77));
  EXPECT_EQ(seen.findings[0].limit, OutsideLimit::kConsumer);
  EXPECT_TRUE(seen.decided);
  EXPECT_LE(seen.findings[0].probability, 0.85);
  EXPECT_TRUE(seen.is_step_elsewhere) << "its waits are none for data";
}

TEST(NativeTime, AShortStepBesideAStoreIsNotTheLimit) {
  // Nothing but the step computes, and it leaves most of the wait unexplained.
  const Outside seen = LookFromOutside(RunTime(3, 0.1, 0.9));
  EXPECT_FALSE(seen.is_step_elsewhere);
  EXPECT_FALSE(seen.decided && seen.findings[0].limit == OutsideLimit::kConsumer);
}

// On many cores at once, so much computing takes little time.
TEST(NativeTime, AStepThatIsShortOnAllCoresIsNotTheLimit) {
  EXPECT_TRUE((NativeTime{9, 0, 0, 400}).IsLoading(10));
  EXPECT_TRUE((NativeTime{0, 9, 0, 400}).IsStep(8, 2));
  EXPECT_FALSE((NativeTime{0, 9, 0, 400}).IsStep(8, 16));
  EXPECT_TRUE((NativeTime{0, 5, 4, 400}).IsStep(8, 2)) << "element by element, too";
  EXPECT_FALSE((NativeTime{2, 7, 0, 400}).IsStep(8, 2)) << "some of it loads";
}

// A trainer that waits a little for its workers waits for data, whatever its step is.
TEST(NativeTime, WaitsForProcessesAreForData) {
  const Outside seen =
      LookFromOutside(WithStacks(Loader(2, 0.87, 0.13, 0.3, 0, 0.68), 8.5, 0, 1.3));
  EXPECT_FALSE(seen.is_step_elsewhere);
}

// Threads that wait for something to do, or for room, are off the CPU as those at a lock are.
TEST(NativeWaits, ConditionsThatARunTimesThreadsWaitForAreNoLock) {
  const auto recorded = [](const std::string& waits_in, double trainer_waits) {
    OutsideRun made(10, 1.1);
    made.Process(100, 1, "python", "python train.py");
    made.OnCpu(100, "python (main)", 0.98 - trainer_waits);
    made.Waits(100, "python (main)", "lock", trainer_waits, "100/tf_Compute");
    for (int t = 0; t < 3; ++t) {
      made.OnCpu(100, "tf_Compute", 0.1).Blocked(100, "tf_Compute", "sleep", 0.1);
      made.Waits(100, "tf_Compute", "lock", 0.6, "100/tf_Compute");
      made.Waits(100, "tf_Compute", "lock", 0.12, "100/python (main)");
    }
    RunView run = made.view;
    SampleOnCpu("tf_Compute", "tf_Compute;start_thread;tsl::WorkerLoop", 2, &run);
    StackRow row;
    row.kind = "off_cpu";
    row.process_id = 100;
    row.thread = "tf_Compute";
    row.folded = "tf_Compute;[lock];start_thread;" + waits_in;
    row.samples_count = 4000;
    row.time_ns = 9'000'000'000;
    run.stacks.push_back(row);
    row.folded = "tf_Compute;[lock];start_thread;Mutex::LockSlow;futex";
    row.time_ns = 1'000'000'000;
    run.stacks.push_back(row);
    row.folded = "tf_Compute;[lock];[no stack]";
    row.time_ns = 20'000'000'000;
    run.stacks.push_back(row);
    return LookFromOutside(run).findings[0].limit;
  };
  const std::string idle = "Eigen::ThreadPoolTempl::WaitForWork;Eigen::EventCount::CommitWait";
  EXPECT_EQ(recorded(idle, 0.24), OutsideLimit::kConsumer);
  EXPECT_EQ(recorded("Mutex::LockSlow;futex", 0.24), OutsideLimit::kLock);
  EXPECT_NE(recorded(idle, 0.95), OutsideLimit::kConsumer) << "its own thread computes little";
  EXPECT_NE(recorded(idle, 0.6), OutsideLimit::kConsumer) << "it computes more than they, not much";
}

TEST(NativeTime, ThreadsThatLoadFeedTheTrainer) {
  const Outside seen = LookFromOutside(RunTime(0.4, 6, 0.8));
  EXPECT_EQ(seen.findings[0].limit, OutsideLimit::kProducers);
  EXPECT_FALSE(seen.is_step_elsewhere);
}

}  // namespace
}  // namespace headrace::analysis
