// Goroutines of a Go program, by its sampled stacks.
#include "analysis/outside/goroutines.h"

#include <gtest/gtest.h>

#include <string>

#include "analysis/outside/outside.h"
#include "tests/analysis/outside_run.h"

namespace headrace::analysis {
namespace {

// Threads of a Go program that mostly wait, as goroutines go from one to the other.
struct Go {
  Go() {
    seen.Process(100, 1, "events", "./events");
    seen.OnCpu(100, "events (main)", 0.5).OnCpu(100, "events", 0.5);
    seen.Blocked(100, "events", "sleep", 0.99);
    seen.Waits(100, "events (main)", "lock", 0.5, "100/events");
    seen.Waits(100, "events", "lock", 0.5, "100/events (main)");
  }
  Go& Samples(const std::string& frames, double seconds) {
    SampleOnCpu("events", "events;runtime.goexit.abi0;" + frames, seconds, &seen.view);
    return *this;
  }
  OutsideRun seen;
};

TEST(Goroutines, AreAddedUpByTheFunctionTheyBeganWith) {
  Go program;
  program.Samples("main.main.gowrap1;main.decode;encoding/json.Unmarshal", 6)
      .Samples("main.main.gowrap1;main.decode;compress/flate.(*decompressor).Read", 3.5)
      .Samples("runtime.main;main.main;main.step", 0.5)
      .Samples("runtime.gcBgMarkWorker;runtime.systemstack.abi0", 20);
  const auto seen = LookAtGoroutines(program.seen.view, {100});
  ASSERT_TRUE(seen);
  EXPECT_EQ(seen->busiest, "main.decode");
  EXPECT_NEAR(seen->busiest_cores, 0.95, 1e-9);
  EXPECT_EQ(seen->place, "encoding/json.Unmarshal");
  EXPECT_NEAR(seen->main_cores, 0.05, 1e-9);
  EXPECT_FALSE(LookAtGoroutines(program.seen.view, {7}));
  EXPECT_FALSE(LookAtGoroutines(Go().seen.view, {100}));
}

TEST(Goroutines, ThePlaceIsNoPartOfTheRunTime) {
  const auto place = [](const std::string& below, double seconds) {
    Go program;
    program.Samples("main.main.gowrap1;main.read;main.line;" + below, seconds)
        .Samples("main.main.gowrap1;main.read", 1);
    return LookAtGoroutines(program.seen.view, {100})->place;
  };
  EXPECT_EQ(place("os.(*File).Read;internal/poll.(*FD).Read;syscall.read;do_syscall_64_[k]", 5),
            "os.(*File).Read");
  EXPECT_EQ(place("runtime.mallocgc", 5), "main.line");
  EXPECT_EQ(place("os.(*File).Read", 0.5), "") << "less than half";
  EXPECT_EQ(place(";;", 5), "main.line") << "damaged";
}

TEST(Goroutines, OneThatComputesAllTheTimeIsTheLimit) {
  Go decodes;
  decodes.Samples("main.main.gowrap1;main.decode;encoding/json.Unmarshal", 9.5);
  const Outside seen = LookFromOutside(decodes.seen.view);
  EXPECT_TRUE(seen.decided);
  EXPECT_EQ(seen.findings[0].limit, OutsideLimit::kProducers);
  EXPECT_LE(seen.findings[0].probability, 0.75);
  EXPECT_EQ(seen.activity_place, "main.decode");

  Go trains;
  trains.Samples("runtime.main;main.main;main.step", 9.5);
  EXPECT_EQ(LookFromOutside(trains.seen.view).findings[0].limit, OutsideLimit::kConsumer);

  const auto place = [](const std::string& entry, double seconds, double main_s) {
    Go other;
    other.Samples("main.main.gowrap1;" + entry + ";net/http.Get", seconds)
        .Samples("runtime.main;main.main", main_s);
    return LookFromOutside(other.seen.view).activity_place;
  };
  EXPECT_EQ(place("main.decode", 9.5, 1), "main.decode");
  EXPECT_EQ(place("main.fetch", 0.5, 0), "") << "it hardly computes";
  EXPECT_EQ(place("main.fetch", 16, 0.5), "") << "several of them, which may wait in turn";
  EXPECT_EQ(place("main.decode", 9.5, 9), "") << "the main goroutine computes as long";
  EXPECT_EQ(place("main.trainModel", 9.5, 0), "") << "the main goroutine may wait for the step";
}

}  // namespace
}  // namespace headrace::analysis
