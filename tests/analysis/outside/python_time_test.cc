// Sampled Python stacks: what of the trainer's own thread is its step.
#include "analysis/outside/python_time.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "analysis/outside/outside.h"
#include "analysis/run/python_frames.h"
#include "tests/analysis/outside_run.h"

namespace headrace::analysis {
namespace {

TEST(PythonTime, StacksTellAStepFromASamplerInTheSameThread) {
  const auto run = [] { return Loader(2, 0.93, 0.05, 0.1, 0, 0.88); };
  const Outside step = LookFromOutside(WithStacks(run(), 8.5, 0.5, 0.5));
  EXPECT_EQ(step.findings[0].limit, OutsideLimit::kConsumer);
  EXPECT_DOUBLE_EQ(step.findings[0].probability, 0.85);
  EXPECT_FALSE(MayUnpickle(step));

  const Outside sampler = LookFromOutside(WithStacks(run(), 1, 8, 0.5));
  EXPECT_EQ(sampler.findings[0].limit, OutsideLimit::kOwnWork);
  EXPECT_GE(sampler.findings[0].probability, 0.95);
  ASSERT_TRUE(sampler.python);
  EXPECT_EQ(sampler.python->operator_name, "sampler");
  EXPECT_EQ(sampler.python->function, "ByWeight.__iter__ (train.py:9)");
  EXPECT_NEAR(*sampler.OwnWork(), 0.8, 0.05);

  // What is half and half is not decided; stacks of unknown functions tell nothing.
  EXPECT_FALSE(LookFromOutside(WithStacks(run(), 4.7, 4.7, 0.5)).decided);
  RunView unknown = run().view;
  StackRow row = WithStacks(run(), 9.5, 0, 0).stacks.back();
  row.folded = "MainThread;<module> (train.py:40);main (train.py:30)";
  unknown.stacks.push_back(row);
  EXPECT_FALSE(LookFromOutside(unknown).python);
}

// Each of several ranks trains: what they do together is no share of one.
TEST(PythonTime, StacksOfRanksAreSharesOfAllTheirTime) {
  OutsideRun run;
  run.Process(1, 0, "python", "torchrun");
  run.Blocked(1, "python (main)", "child", 0.99).OnCpu(1, "python (main)", 0.01);
  for (int64_t pid = 100; pid < 104; ++pid) {
    run.Process(pid, 1, "rank").OnCpu(pid, "rank (main)", 0.93);
    const std::string worker = std::to_string(pid + 100) + "/pt_data_worker (main)";
    run.Process(pid + 100, pid, "pt_data_worker").OnCpu(pid + 100, "pt_data_worker (main)", 0.1);
    run.Waits(pid + 100, "pt_data_worker (main)", "poll", 0.89,
              std::to_string(pid) + "/rank (main)");
    run.Waits(pid, "rank (main)", "poll", 0.04, worker);
  }
  RunView view = run.view;
  for (int64_t pid = 100; pid < 104; ++pid) {
    for (StackRow row : WithStacks(OutsideRun(), 8, 1.6, 0.4).stacks) {
      row.process_id = pid;
      view.stacks.push_back(row);
    }
  }
  const Outside seen = LookFromOutside(view);
  EXPECT_EQ(seen.findings[0].limit, OutsideLimit::kConsumer);
  ASSERT_TRUE(seen.OwnWork());
  EXPECT_NEAR(*seen.OwnWork(), 0.16, 0.03);
}

// mp.spawn starts ranks by a new interpreter, or by a fork of the parent: what the child runs
// counts.
TEST(PythonTime, StacksOfASpawnedRankAreThoseOfItsOwnFunctions) {
  for (const std::string& start :
       {std::string("<module> (<string>:1);spawn_main (multiprocessing/spawn.py:122);"),
        std::string("main (train.py:60);Popen.__init__ (multiprocessing/popen_fork.py:19);")}) {
    SCOPED_TRACE(start);
    RunView view = OutsideRun(10).view;
    Sample("MainThread",
           start +
               "BaseProcess._bootstrap (multiprocessing/process.py:314);BaseProcess.run "
               "(multiprocessing/process.py:108);run (train.py:33, loop 29);Tensor.backward "
               "(torch/_tensor.py:623)",
           5, &view);
    // A class of the program's with a run() of its own.
    Sample("MainThread",
           start +
               "BaseProcess._bootstrap (multiprocessing/process.py:314);run (train.py:33, loop "
               "29);Tensor.backward (torch/_tensor.py:623)",
           4, &view);
    const auto time = LookAtPython(view, {100}, false);
    ASSERT_TRUE(time);
    EXPECT_NEAR(time->step_s, 9, 1e-6);
  }
}

// What is not of a loop, or may be a wait for a device, is neither loading nor the step.
TEST(PythonTime, StacksBesideTheLoopSayNothing) {
  RunView view = WithStacks(Loader(2, 0.93, 0.05, 0.1, 0, 0.88), 8.5, 0.5, 0.5);
  StackRow row = view.stacks.back();
  row.samples_count = 600;
  row.time_ns = 60'000'000'000;
  const std::string main = "MainThread;main (train.py:9)";
  for (const char* aside :
       {";Dataset.map (datasets/arrow_dataset.py:3000);iter_outputs "
        "(datasets/arrow_dataset.py:3500)",
        ";__iter__ (accelerate/data_loader.py:567);send_to_device "
        "(accelerate/utils/operations.py:1)",
        ";DataLoader.__iter__ (torch/utils/data/dataloader.py:5);BaseProcess.start "
        "(multiprocessing/process.py:121)"}) {
    row.folded = main + aside;
    view.stacks.push_back(row);
  }
  EXPECT_EQ(LookFromOutside(view).findings[0].limit, OutsideLimit::kConsumer);
}

// A few samples of a long run say nothing; nor does a read that may have waited.
TEST(PythonTime, FewStacksSayNothing) {
  const Outside few =
      LookFromOutside(WithStacks(Loader(2, 0.93, 0.05, 0.1, 0, 0.88), 0.1, 0.4, 0.2));
  EXPECT_FALSE(few.OwnWork());
  EXPECT_TRUE(MayUnpickle(few));

  RunView view = WithStacks(Loader(2, 0.93, 0.05, 0.1, 0, 0.88), 4, 1, 0.1);
  StackRow row = view.stacks.back();
  row.folded =
      "MainThread;main (train.py:9);Queue.get (multiprocessing/queues.py:103);"
      "Connection._recv (multiprocessing/connection.py:378)";
  row.samples_count = 45;
  row.time_ns = 4'500'000'000;
  view.stacks.push_back(row);
  EXPECT_EQ(LookFromOutside(view).findings[0].limit, OutsideLimit::kConsumer);
}

// Each part of a batch that the trainer takes apart is asked of the process that sent it: the two
// wait for each other in turn, and no queue would help.
TEST(PythonTime, TakingABatchApartIsNoPauseOfTheOthers) {
  const auto look = [](double taking_s, double step_s) {
    RunView view = Loader(1, 0.6, 0.38, 0.3, 0, 0.68).view;
    Sample("MainThread",
           "main (train.py:30, loop 29);Queue.get (multiprocessing/queues.py:122);"
           "rebuild_storage_fd (torch/multiprocessing/reductions.py:543);"
           "Connection._recv (multiprocessing/connection.py:395)",
           taking_s, &view);
    Sample("MainThread", "main (train.py:33, loop 29);Tensor.backward (torch/_tensor.py:623)",
           step_s, &view);
    return LookFromOutside(view);
  };
  const Outside taking = look(8, 1);
  EXPECT_EQ(taking.findings[0].limit, OutsideLimit::kOwnWork);
  EXPECT_GT(taking.findings[0].probability, 0.9);
  EXPECT_EQ(taking.python->operator_name, "unpickle");
  EXPECT_EQ(look(3, 6).findings[0].limit, OutsideLimit::kPauses);
}

// One thread that does everything, and where its stacks are: frames below "main" and seconds.
Outside OneThread(const std::vector<std::pair<std::string, double>>& stacks) {
  OutsideRun run(10, 1.2);
  run.Process(100, 1, "python", "python train.py").OnCpu(100, "python (main)", 1);
  RunView view = run.view;
  for (const auto& [frames, seconds] : stacks) {
    Sample("MainThread", "<module> (train.py:40, no loop);" + frames, seconds, &view);
  }
  return LookFromOutside(view);
}

constexpr char kBefore[] = "main (train.py:20, no loop);make (data.py:7, loop 6)";
constexpr char kStep[] = "main (train.py:33, loop 30);Tensor.backward (torch/_tensor.py:623)";
constexpr char kGenerator[] = "main (train.py:30, loop 30, next);batches (data.py:12, loop 11)";
constexpr char kImage[] =
    "main (train.py:31, loop 30);look (data.py:22, no loop);open (PIL/Image.py:3)";
constexpr char kShape[] = "main (train.py:32, loop 30);shape (data.py:30, no loop)";
constexpr char kNamed[] = "main (train.py:32, loop 30);load_rows (data.py:40, no loop)";

TEST(PythonTime, OneThreadIsToldApartByItsLoop) {
  struct Case {
    const char* what;
    std::vector<std::pair<std::string, double>> stacks;
    OutsideLimit limit;
    bool decided;
  };
  using enum OutsideLimit;
  for (const Case& one : {
           Case{"its step", {{kStep, 8}, {kGenerator, 2}}, kConsumer, true},
           Case{"a generator", {{kStep, 2}, {kGenerator, 8}}, kOwnWork, true},
           Case{"what makes data before the loop is not of it",
                {{kBefore, 5}, {kStep, 4}, {kGenerator, 1}},
                kConsumer,
                true},
           Case{"a library for images", {{kStep, 2}, {kImage, 8}}, kOwnWork, true},
           Case{"what may be either is of neither", {{kStep, 3}, {kShape, 7}}, kOwnWork, false},
           Case{"what may be either does not matter", {{kStep, 8}, {kShape, 2}}, kConsumer, true},
           Case{"a name says so", {{kStep, 1}, {kNamed, 9}}, kOwnWork, true},
           Case{"the step takes its batch by next()",
                {{"main (train.py:30, loop 29, next);train_step (train.py:12, no loop);"
                  "Tensor.backward (torch/_tensor.py:623)",
                  10}},
                kConsumer,
                true},
           Case{"what follows the training is not of it",
                {{"main (train.py:30, no loop);train (train.py:12, loop 10);Tensor.backward "
                  "(torch/_tensor.py:623)",
                  8},
                 {"main (train.py:31, no loop);export (train.py:22, no loop)", 2}},
                kConsumer,
                true},
           Case{"a loop before it is not of it",
                {{"main (train.py:12, loop 11);read_file (data.py:4, no loop)", 5},
                 {kStep, 4},
                 {kGenerator, 1}},
                kConsumer,
                true},
           Case{"epochs of loading",
                {{"main (train.py:50, loop 49);train_epoch (train.py:12, loop 10);load_batch "
                  "(data.py:7, no loop)",
                  6.5},
                 {"main (train.py:51, loop 49);validate (train.py:22, loop 20);load_batch "
                  "(data.py:7, no loop)",
                  2},
                 {"main (train.py:50, loop 49);train_epoch (train.py:13, loop 10);update "
                  "(model.py:9, no loop)",
                  1.5}},
                kOwnWork,
                true},
           Case{"what is kept is no loading",
                {{kStep, 7},
                 {"main (train.py:35, loop 30);keep (train.py:60, no loop);savez "
                  "(numpy/lib/_npyio_impl.py:9)",
                  3}},
                kConsumer,
                true},
           Case{"few samples", {{kStep, 0.7}, {kGenerator, 0.3}}, kAlone, false},
       }) {
    SCOPED_TRACE(one.what);
    const Outside seen = OneThread(one.stacks);
    EXPECT_EQ(seen.decided, one.decided);
    if (one.decided || one.limit == kAlone) {
      EXPECT_EQ(seen.findings[0].limit, one.limit);
    }
  }
}

// Only a function's name is less sure than a library that is known.
TEST(PythonTime, ANameIsLessThanALibrary) {
  const auto probability = [](const char* frames) {
    return OneThread({{kStep, 1}, {frames, 9}}).findings[0].probability;
  };
  EXPECT_GE(probability(kImage), 0.95);
  EXPECT_LT(probability(kNamed), 0.92);
  EXPECT_GT(probability(kNamed), 0.75);
}

TEST(PythonTime, FunctionsAreTheProgramsOwn) {
  const Outside seen = OneThread({{kStep, 4}, {kImage, 3}, {kShape, 3}});
  ASSERT_TRUE(seen.python);
  EXPECT_EQ(seen.python->step_function, "main (train.py:33)") << "the line that calls the library";
  EXPECT_EQ(seen.python->function, "look (data.py:22)");
  EXPECT_EQ(seen.python->unknown_function, "shape (data.py:30)");
  EXPECT_NEAR(seen.python->unknown_s, 3, 0.01);
  ASSERT_TRUE(seen.OwnTimes());
  EXPECT_NEAR(seen.OwnTimes()->unknown, 0.3, 0.01);
}

// A layer of a network that goes over its own layers asks for no batch.
TEST(PythonTime, ALoopOfTheStepIsNoLoading) {
  const Outside seen = OneThread({{"main (train.py:33, loop 30);Net.forward (net.py:8, loop 8);"
                                   "Module._call_impl (torch/nn/modules/module.py:1787)",
                                   8},
                                  {kGenerator, 2}});
  EXPECT_EQ(seen.findings[0].limit, OutsideLimit::kConsumer);
  EXPECT_TRUE(seen.decided);
}

// A loop over epochs leads to the one that trains; what a loop mostly does itself is part of it.
TEST(PythonTime, ALoopOverEpochsIsNotTheOneThatTrains) {
  const std::string epoch = "main (train.py:50, loop 49);";
  const Outside epochs = OneThread({{epoch + "one_epoch (train.py:12, loop 10);step "
                                             "(train.py:4, no loop);Tensor.backward "
                                             "(torch/_tensor.py:623)",
                                     4},
                                    {epoch + "one_epoch (train.py:10, loop 10, next);batches "
                                             "(data.py:4, loop 3)",
                                     6}});
  EXPECT_EQ(epochs.findings[0].limit, OutsideLimit::kOwnWork);
  EXPECT_EQ(epochs.python->function, "batches (data.py:4)");
  EXPECT_EQ(epochs.python->step_function, "step (train.py:4)");

  const Outside plain =
      OneThread({{"main (train.py:32, loop 30);load_rows (data.py:40, loop 39)", 9},
                 {"main (train.py:33, loop 30);fit (model.py:4, no loop)", 1}});
  EXPECT_EQ(plain.findings[0].limit, OutsideLimit::kOwnWork);
  EXPECT_EQ(plain.python->function, "load_rows (data.py:40)");
}

// A run-time's threads compute the step that the main thread waits for.
TEST(PythonTime, AStepInOtherThreadsIsTheTrainers) {
  for (const bool in_step : {true, false}) {
    OutsideRun run(10, 1.2);
    run.Process(100, 1, "python", "python train.py").OnCpu(100, "python (main)", 0.2);
    run.Waits(100, "python (main)", "lock", 0.8, "100/tf_Compute");
    run.OnCpu(100, "tf_Compute", 0.85);
    run.Waits(100, "tf_Compute", "lock", 0.1, "100/python (main)");
    RunView view = run.view;
    Sample("MainThread",
           in_step ? "main (gan.py:33, loop 30);Function.__call__ "
                     "(tensorflow/python/eager/polymorphic_function/polymorphic_function.py:833)"
                   : "main (gan.py:30, loop 30);OwnedIterator.__next__ "
                     "(tensorflow/python/data/ops/iterator_ops.py:826);iterator_get_next "
                     "(tensorflow/python/ops/gen_dataset_ops.py:3081)",
           9.5, &view);
    const OutsideLimit limit = LookFromOutside(view).findings[0].limit;
    EXPECT_EQ(limit == OutsideLimit::kConsumer, in_step);
  }
}

// The loop is found below the functions that lead to it, the program's own and a library's.
TEST(PythonTime, TheLoopIsFoundBelowALibrary) {
  const std::string fit =
      "main (train.py:33, no loop);Trainer.fit (lightning/trainer.py:5);_Loop.run "
      "(lightning/loops.py:9);";
  const Outside seen = OneThread(
      {{kBefore, 3},
       {fit + "_Loop.advance (lightning/loops.py:20);Tensor.backward (torch/_tensor.py:623)", 2},
       {fit + "_Loop.advance (lightning/loops.py:12);_Fetcher.__next__ (lightning/fetch.py:3);"
              "_BaseDataLoaderIter.__next__ (torch/utils/data/dataloader.py:725);fetch "
              "(torch/utils/data/_utils/fetch.py:50);Rows.__getitem__ (train.py:9, no loop)",
        5}});
  EXPECT_EQ(seen.findings[0].limit, OutsideLimit::kOwnWork);
  ASSERT_TRUE(seen.OwnTimes());
  EXPECT_NEAR(seen.OwnTimes()->loads, 5.0 / 7, 0.02) << "what comes before it is left out";
  EXPECT_EQ(seen.python->operator_name, "getitem");
  EXPECT_EQ(seen.python->function, "Rows.__getitem__ (train.py:9)");
}

// Lightning gives each batch to the program before its step has it: most of the time though it is,
// the loop is where both are called.
TEST(PythonTime, WhatPreparesABatchForTheStepLoads) {
  const std::string advance =
      "main (train.py:33, no loop);Trainer.fit (lightning/trainer.py:5);_Loop.advance "
      "(lightning/loops.py:20);";
  const Outside seen = OneThread(
      {{kBefore, 3},
       {advance + "_run (lightning/auto.py:9);Tensor.backward (torch/_tensor.py:623)", 1},
       {advance + "_apply (lightning/module.py:3);Net.on_after_batch_transfer (train.py:9, no "
                  "loop);Net.spectrum (train.py:5, loop 5)",
        9}});
  EXPECT_EQ(seen.findings[0].limit, OutsideLimit::kOwnWork);
  ASSERT_TRUE(seen.OwnTimes());
  EXPECT_NEAR(seen.OwnTimes()->loads, 0.9, 0.02);
}

// A step that is in none of the program's functions is named by the library's, without those that
// only call others.
TEST(PythonTime, ALibrarysPartOfTheStepIsNamed) {
  const std::string fit =
      "main (train.py:33, no loop);Trainer.fit (lightning/trainer.py:5);_Loop.advance "
      "(lightning/loops.py:20);";
  const std::string saves =
      fit +
      "_call_callback_hooks (lightning/call.py:228);ModelCheckpoint._save (lightning/"
      "model_checkpoint.py:600);";
  const Outside seen =
      OneThread({{kBefore, 3},
                 {fit + "Tensor.backward (torch/_tensor.py:623)", 2.5},
                 {saves + "save (torch/serialization.py:1004)", 3},
                 {saves + "_atomic (fabric/cloud_io.py:117)", 2.5},
                 {fit + "_BaseDataLoaderIter.__next__ (torch/utils/data/dataloader.py:725)", 0.5}});
  EXPECT_EQ(seen.findings[0].limit, OutsideLimit::kConsumer);
  EXPECT_EQ(seen.python->step_function,
            "ModelCheckpoint._save (lightning/model_checkpoint.py:600)");
  ASSERT_TRUE(seen.python->step_place);
  EXPECT_NEAR(seen.python->step_place->ratio, 5.5 / 8, 0.02);
  const Outside spread =
      OneThread({{kBefore, 3},
                 {fit + "Tensor.backward (torch/_tensor.py:623)", 4.5},
                 {saves + "save (torch/serialization.py:1004)", 3.5},
                 {fit + "_BaseDataLoaderIter.__next__ (torch/utils/data/dataloader.py:725)", 0.5}});
  EXPECT_FALSE(spread.python->step_place) << "most of it is in none";
}

TEST(PythonTime, AnOperatorThatTakesNearlyAsLongIsToldBesideTheFirst) {
  PythonTime time;
  time.operator_name = "unpickle";
  time.operators_s = {{"", 9}, {"unpickle", 2}, {"sampler", 1.7}, {"collate", 1.2}};
  EXPECT_EQ(OperatorBeside(time), "sampler");
  time.operators_s["sampler"] = time.operators_s["collate"] = 0.9;
  EXPECT_EQ(OperatorBeside(time), "");
  time.operator_name = "";
  EXPECT_EQ(OperatorBeside(time), "");
}

// What takes items by index calls nothing but the data set and the collate_fn.
TEST(PythonTime, ACollateFunctionMayHaveAnyName) {
  const auto operator_of = [](const std::string& called) {
    return std::string(
        OperatorOf(FramesOf("_BaseDataLoaderIter.__next__ (torch/utils/data/dataloader.py:725);"
                            "_MapDatasetFetcher.fetch (torch/utils/data/_utils/fetch.py:57);" +
                            called),
                   0));
  };
  EXPECT_EQ(operator_of("Grams.__call__ (tags.py:42, loop 41)"), "collate");
  EXPECT_EQ(operator_of("to_batch (tags.py:42, no loop)"), "collate");
  EXPECT_EQ(operator_of("main.<locals>.to_batch (tags.py:42, no loop)"), "collate");
  EXPECT_EQ(operator_of("Rows.__getitems__ (rows.py:9, no loop)"), "getitem");
  EXPECT_EQ(operator_of("context_decorator.<locals>.decorate_context (torch/utils/_contextlib.py:"
                        "116);Rows.__getitem__ (rows.py:9, no loop)"),
            "getitem");
  EXPECT_EQ(operator_of("_MapDatasetFetcher.fetch.<locals>.<listcomp> "
                        "(torch/utils/data/_utils/fetch.py:54);Rows.__getitem__ (rows.py:9)"),
            "getitem");
  EXPECT_EQ(std::string(OperatorOf(
                FramesOf("_IterableDatasetFetcher.fetch (torch/utils/data/_utils/fetch.py:33);"
                         "Rides.__iter__ (fares.py:42)"),
                0)),
            "next");
}

// A trainer's main thread, which computes a tenth or so of its time, and four others of one name.
// Shares of each one's time: on a CPU, waiting for its like, and else for the main thread.
OutsideRun FourThreads(double main_cpu, double cpu, double for_its_like) {
  OutsideRun run(10, 1.2);
  run.Process(100, 1, "python", "python train.py");
  run.OnCpu(100, "python (main)", main_cpu);
  run.Waits(100, "python (main)", "lock", 1 - main_cpu, "100/python");
  const double for_main = 1 - cpu - for_its_like;
  for (int t = 0; t < 4; ++t) {
    run.OnCpu(100, "python", cpu);
    run.Waits(100, "python", "lock", for_its_like, "100/python");
    if (for_main > 0.01) run.Waits(100, "python", "lock", for_main, "100/python (main)");
  }
  return run;
}

// `producer_idle` and `worker_idle` of their time one of the threads, or `producers` of that name,
// and two others wait for something to do.
RunView Threads(double producer_idle, double worker_idle, int producers = 1,
                const std::string& fills = "parse (train.py:7)") {
  RunView view = FourThreads(0.1, 0.25, 0.3).view;
  const std::string waits = "Queue.get (queue.py:171);Condition.wait (threading.py:327)";
  const double fills_s = 10.0 * producers, works_s = 20;
  Sample("MainThread", "main (train.py:30);" + waits, 10, &view);
  Sample("Thread (fill)", "fill (train.py:9);" + fills, fills_s * (1 - producer_idle), &view);
  Sample("Thread (fill)", "fill (train.py:9);" + waits, fills_s * producer_idle, &view);
  Sample("Thread (work)", "work (train.py:19)", works_s * (1 - worker_idle), &view);
  Sample("Thread (work)", "work (train.py:18);" + waits, works_s * worker_idle, &view);
  return view;
}

TEST(PythonThreads, OneThatIsAlwaysBusyBesideSomeThatWaitLimits) {
  const Outside seen = LookFromOutside(Threads(0.02, 0.4));
  ASSERT_TRUE(seen.is_busy_thread);
  EXPECT_TRUE(seen.decided);
  EXPECT_EQ(seen.findings[0].limit, OutsideLimit::kProducers);
  EXPECT_LE(seen.findings[0].probability, 0.75);
  EXPECT_EQ(seen.python_threads->busy_thread, "fill");
  EXPECT_EQ(seen.python_threads->busy_function, "parse (train.py:7)");
  EXPECT_EQ(seen.units[seen.culprit].role, UnitRole::kProducer);
  double sum = 0;
  for (const OutsideFinding& finding : seen.findings) sum += finding.probability;
  EXPECT_LE(sum, 1.0001);
}

TEST(PythonThreads, OneThatWaitsOrHasItsLikeIsNot) {
  EXPECT_FALSE(LookFromOutside(Threads(0.3, 0.4)).is_busy_thread) << "it waits, too";
  EXPECT_FALSE(LookFromOutside(Threads(0.02, 0.05)).is_busy_thread) << "so are the others";
  EXPECT_FALSE(LookFromOutside(Threads(0.02, 0.4, 2)).is_busy_thread) << "two of one name";
  const std::string locks = "Slots.acquire (train.py:7, no loop, locks)";
  EXPECT_FALSE(LookFromOutside(Threads(0.02, 0.4, 1, locks)).is_busy_thread) << "at a semaphore";
}

// Threads of a pool that have nothing to do wake each other, as those do that hand on a lock.
TEST(PythonThreads, ThoseWithoutWorkWaitForNoLock) {
  const auto lock = [](const Outside& seen) {
    for (const OutsideFinding& finding : seen.findings) {
      if (finding.limit == OutsideLimit::kLock) return finding.probability;
    }
    return 0.0;
  };
  const auto pool = [](double idle) {
    RunView view = FourThreads(0.2, 0.22, 0.78).view;
    Sample("Thread-1", "read (train.py:9)", 40 * (1 - idle), &view);
    Sample("Thread-1", "_worker (concurrent/futures/thread.py:81)", 40 * idle, &view);
    return view;
  };
  EXPECT_GT(lock(LookFromOutside(pool(0.1))), 0.8);
  EXPECT_LE(lock(LookFromOutside(pool(0.8))), 0.6);
  EXPECT_GT(lock(LookFromOutside(pool(0.8))), 0.1) << "it is not ruled out";
}

// A large batch comes through a pipe: its reader is in one function, waiting or reading.
TEST(PythonTime, WhatIsReadOnACpuIsReceivedAndNotWaitedFor) {
  const std::string receive =
      "main (train.py:30, loop 28);Queue.get (multiprocessing/queues.py:103);"
      "Connection._recv (multiprocessing/connection.py:395)";
  for (const double blocked : {0.05, 0.9}) {
    OutsideRun run(10, 1.2);
    run.Process(100, 1, "python", "python train.py");
    run.OnCpu(100, "python (main)", 1 - blocked);
    run.Process(101, 100, "python").OnCpu(101, "python (main)", 0.2);
    run.Waits(101, "python (main)", "pipe", 0.75, "100/python (main)");
    run.Waits(100, "python (main)", "pipe", blocked, "101/python (main)");
    RunView view = run.view;
    Sample("MainThread", receive, 7, &view);
    Sample("MainThread", "main (train.py:31, loop 28);Tensor.backward (torch/_tensor.py:623)", 3,
           &view);
    const Outside seen = LookFromOutside(view);
    ASSERT_TRUE(seen.OwnTimes());
    EXPECT_EQ(seen.findings[0].limit == OutsideLimit::kOwnWork, blocked < 0.5);
    EXPECT_NEAR(seen.OwnTimes()->waits, std::min(0.7, blocked), 0.06);
    EXPECT_EQ(seen.python->operator_name == "unpickle", blocked < 0.5);
  }
}

}  // namespace
}  // namespace headrace::analysis
