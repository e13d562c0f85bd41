// Sampled Python stacks of a program that the import hook accounts: where operators and the step
// are.
#include "analysis/outside/python_places.h"

#include <gtest/gtest.h>

#include <cmath>
#include <string>

namespace headrace::analysis {
namespace {

constexpr const char* kWorker =
    "MainThread;<module> (train.py:69, no loop);main (train.py:56, no loop);DataLoader.__iter__ "
    "(torch/utils/data/dataloader.py:505);BaseProcess._bootstrap (multiprocessing/process.py:314);"
    "_worker_loop (torch/utils/data/_utils/worker.py:375);";

struct Sampled {
  RunView run;
  Sampled& Add(int64_t process_id, const std::string& folded, double seconds) {
    StackRow row;
    row.kind = "python";
    row.process_id = process_id;
    row.thread = "MainThread";
    row.folded = folded;
    row.samples_count = std::llround(10 * seconds);
    row.time_ns = std::llround(1e9 * seconds);
    run.stacks.push_back(row);
    return *this;
  }
  Sampled& InWorker(const std::string& frames, double seconds) {
    return Add(3, kWorker + frames, seconds);
  }
};

OperatorRow Operator(const std::string& name) {
  OperatorRow op;
  op.name = name;
  return op;
}

TEST(PythonPlaces, AnOperatorsLineIsOfTheProgramsInnermostFunction) {
  const std::string item = "_MapItems.__getitems__ (headrace/_loader.py:91);";
  Sampled sampled;
  sampled
      .InWorker(item +
                    "Patches.__getitem__ (train.py:43, no loop);with_backoff (train.py:28, loop "
                    "22)",
                3)
      .InWorker(item +
                    "Patches.__getitem__ (train.py:43, no loop);with_backoff (train.py:24, loop "
                    "22);urlopen (urllib/request.py:216)",
                1)
      .InWorker(
          "_Collate.__call__ (headrace/_loader.py:200);default_collate "
          "(torch/utils/data/_utils/collate.py:398)",
          2);
  const auto place = PlaceOf(sampled.run, Operator("getitem"));
  ASSERT_TRUE(place);
  EXPECT_EQ(place->name, "with_backoff (train.py:28)");
  EXPECT_DOUBLE_EQ(place->ratio, 0.75);
  // A library's functions are not the program's.
  EXPECT_FALSE(PlaceOf(sampled.run, Operator("collate")));
  EXPECT_FALSE(PlaceOf(sampled.run, Operator("next")));
}

TEST(PythonPlaces, SpreadLinesNameTheFunctionAndFewSamplesNothing) {
  const std::string item = "_MapItems.__getitem__ (headrace/_loader.py:91);";
  Sampled sampled;
  for (int line = 40; line < 44; ++line) {
    sampled.InWorker(item + "Rows.__getitem__ (train.py:" + std::to_string(line) + ", no loop)", 1);
  }
  ASSERT_TRUE(PlaceOf(sampled.run, Operator("getitem")));
  EXPECT_EQ(PlaceOf(sampled.run, Operator("getitem"))->name, "Rows.__getitem__ (train.py)");
  Sampled few;
  few.InWorker(item + "Rows.__getitem__ (train.py:40, no loop)", 0.5);
  EXPECT_FALSE(PlaceOf(few.run, Operator("getitem")));
}

TEST(PythonPlaces, APoolsOperatorIsNamedAfterItsFunction) {
  Sampled sampled;
  sampled.InWorker("_Call.__call__ (headrace/_pools.py:90);play (train.py:12, loop 10)", 3);
  ASSERT_TRUE(PlaceOf(sampled.run, Operator("play")));
  EXPECT_EQ(PlaceOf(sampled.run, Operator("play"))->name, "play (train.py:12)");
  EXPECT_FALSE(PlaceOf(sampled.run, Operator("lay")));
}

// Of workers that are started for each epoch, what they do first is not what they fetch.
TEST(PythonPlaces, WorkersStartAndFetch) {
  Sampled sampled;
  sampled
      .InWorker("load_words (train.py:26, no loop);Counter.update (collections/__init__.py:690)", 6)
      .InWorker(
          "fetch (torch/utils/data/_utils/fetch.py:54);Rows.__getitem__ (train.py:40, no loop)", 2)
      .InWorker(
          "Queue.get (multiprocessing/queues.py:113);wait (multiprocessing/connection.py:947);"
          "_PollLikeSelector.select (selectors.py:415)",
          9);
  const auto workers = LookAtWorkers(sampled.run, {3});
  ASSERT_TRUE(workers);
  EXPECT_DOUBLE_EQ(workers->start_ratio, 0.75);
  ASSERT_TRUE(workers->place);
  EXPECT_EQ(workers->place->name, "load_words (train.py:26)");
  EXPECT_FALSE(LookAtWorkers(sampled.run, {4}));
}

// A spawned worker loads the program's modules before it works.
TEST(PythonPlaces, SpawnedWorkersStart) {
  Sampled sampled;
  sampled
      .Add(3,
           "MainThread;<module> (<string>:1);spawn_main (multiprocessing/spawn.py:122);prepare "
           "(multiprocessing/spawn.py:236);_find_and_load (<frozen importlib._bootstrap>:1176)",
           6)
      .InWorker(
          "fetch (torch/utils/data/_utils/fetch.py:54);Rows.__getitem__ (train.py:40, no loop)", 2);
  const auto workers = LookAtWorkers(sampled.run, {3});
  ASSERT_TRUE(workers);
  EXPECT_DOUBLE_EQ(workers->start_ratio, 0.75);
}

TEST(PythonPlaces, WhatAnOperatorWaitsForIsInItsStacks) {
  const std::string read =
      ";HTTPConnection.getresponse (http/client.py:1386);"
      "SocketIO.readinto (socket.py:706)";
  Sampled sampled;
  sampled.InWorker(
      "_MapItems.__getitem__ (headrace/_loader.py:91);Rows.__getitem__ "
      "(train.py:40, no loop)" +
          read,
      4);
  sampled.InWorker(
      "_MapItems.__getitem__ (headrace/_loader.py:91);Rows.__getitem__ "
      "(train.py:41, no loop)",
      1);
  EXPECT_EQ(ActivityIn(sampled.run, Operator("getitem")), Activity::kNetwork);
  EXPECT_FALSE(ActivityIn(sampled.run, Operator("collate"))) << "never seen";
  // tf.data calls Python functions in threads of its own.
  sampled.Add(5,
              "python;FuncRegistry.__call__ (tensorflow/python/ops/script_ops.py:269);"
              "read (train.py:35, no loop, sleeps)",
              3);
  OperatorRow map = Operator("map");
  map.stage = "tf.data map";
  EXPECT_EQ(ActivityIn(sampled.run, map), Activity::kSleeps);
  map.busy_ns = 4'000'000'000;
  ASSERT_TRUE(PlaceOf(sampled.run, map));
  EXPECT_EQ(PlaceOf(sampled.run, map)->name, "read (train.py:35)");
  EXPECT_NEAR(PlaceOf(sampled.run, map)->ratio, 0.75, 0.01) << "of the operator's time";
  // The step is in the main thread of who took batches, beside its loaders.
  sampled.Add(0, "MainThread;main (train.py:60, loop 56);log (train.py:9, no loop)" + read, 4);
  sampled.Add(0,
              "MainThread;main (train.py:56, loop 56, next);Batches.__next__ "
              "(headrace/_batches.py:140)",
              9);
  sampled.Add(7, "MainThread;serve (store.py:60, loop 56)", 9);
  OperatorRow step = Operator("step");
  step.kind = "consumer";
  EXPECT_FALSE(ActivityIn(sampled.run, step)) << "nobody took batches";
  MeasurementRow row;
  row.metric = "rank_steps_count";
  row.process_id = 0;
  row.value = 100;
  sampled.run.measurements.push_back(row);
  EXPECT_EQ(ActivityIn(sampled.run, step), Activity::kNetwork);
}

// The step is the trainer's alone, though a worker that was forked has its parent's frames, too.
TEST(PythonPlaces, TheStepIsTheTrainers) {
  const std::string main = "MainThread;<module> (train.py:69, no loop);main (train.py:";
  Sampled sampled;
  sampled.Add(0, main + "60, loop 56);Tensor.backward (torch/_tensor.py:630)", 4)
      .Add(0,
           main + "62, loop 56);evaluate (train.py:33, loop 30);Net.forward (train.py:20, no loop)",
           1)
      .Add(0, main + "56, loop 56, next);Batches.__next__ (headrace/_batches.py:140)", 3)
      .InWorker(
          "_MapItems.__getitem__ (headrace/_loader.py:91);Rows.__getitem__ (train.py:40, no loop)",
          9);
  EXPECT_FALSE(PlaceOfStep(sampled.run)) << "nobody took batches";
  MeasurementRow row;
  row.metric = "rank_steps_count";
  row.process_id = 0;
  row.value = 100;
  sampled.run.measurements.push_back(row);
  const auto place = PlaceOfStep(sampled.run);
  ASSERT_TRUE(place);
  EXPECT_EQ(place->name, "main (train.py:60)");
  EXPECT_NEAR(place->ratio, 0.8, 0.01);
}

// A producer process of the program's own, forked: what its parent did comes first.
TEST(PythonPlaces, AFeedersPlaceIsWhereItsProcessComputes) {
  const std::string start =
      "MainThread;<module> (train.py:70);main (train.py:60);BaseProcess.start "
      "(multiprocessing/process.py:121);BaseProcess.run (multiprocessing/process.py:108);";
  Sampled sampled;
  const std::string features = start + "produce (train.py:31, loop 29);features (train.py:20, ";
  sampled.Add(5, features + "no loop)", 1)
      .Add(5, features + "no loop);features.<locals>.<listcomp> (train.py:20, loop 20)", 2)
      .Add(5, start + "produce (train.py:33, loop 29);Queue.put (multiprocessing/queues.py:94)",
           0.5)
      .Add(5, start + "produce (train.py:33, loop 29);Condition.wait (threading.py:320)", 9);
  const auto place = PlaceOfFeeders(sampled.run, {5}, true);
  ASSERT_TRUE(place);
  EXPECT_EQ(place->name, "features (train.py:20)");
  EXPECT_FALSE(PlaceOfFeeders(sampled.run, {6}, true));
}

// What a worker of a pool is sent with each task it unpickles in C, in the function that also waits
// for tasks.
TEST(PythonPlaces, AFeederThatComputesInAQueueUnpickles) {
  const std::string start =
      "MainThread;<module> (train.py:70);BaseProcess.run (multiprocessing/process.py:108);"
      "_process_worker (concurrent/futures/process.py:249);";
  Sampled sampled;
  sampled.Add(5, start + "Queue.get (multiprocessing/queues.py:122)", 3)
      .Add(5, start + "Corpus.batch (train.py:20, no loop)", 0.5);
  const auto place = PlaceOfFeeders(sampled.run, {5}, true);
  ASSERT_TRUE(place);
  EXPECT_EQ(place->name, "Queue.get (multiprocessing/queues.py:122)");
  const auto waits = PlaceOfFeeders(sampled.run, {5}, false);
  EXPECT_TRUE(!waits || waits->name != place->name);
}

}  // namespace
}  // namespace headrace::analysis
