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
  Go& Stores(const std::string& frames, double seconds) {
    SampleOnCpu("events", "events;[storage];runtime.goexit.abi0;" + frames, seconds, &seen.view);
    seen.view.stacks.back().kind = "off_cpu";
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

// Its waits are spread over the threads that it goes to.
TEST(Goroutines, OneThatWaitsForStorageIsTheLimit) {
  const std::string sync = ";os.(*File).Sync;internal/poll.(*FD).Fsync;syscall.Syscall";
  struct Case {
    const char* what;
    double stores_s, main_s;
    bool is_limit;
  } kCases[] = {{"it mostly stores", 6, 3, true},
                {"it stores now and then", 3, 3, false},
                {"several do so beside each other", 14, 0.1, false}};
  for (const Case& test : kCases) {
    SCOPED_TRACE(test.what);
    Go program;
    program.Samples("runtime.main;main.main;main.step", test.main_s)
        .Stores("runtime.main;main.main;main.(*journal).record" + sync, test.stores_s)
        .Stores("main.main.gowrap1;main.feed" + sync, test.stores_s / 3);
    const Outside seen = LookFromOutside(program.seen.view);
    EXPECT_EQ(seen.findings[0].limit == OutsideLimit::kStorage, test.is_limit);
    if (!test.is_limit) continue;
    EXPECT_EQ(seen.culprit, 0u);
    EXPECT_EQ(seen.activity_place, "main.(*journal).record, os.(*File).Sync");
    EXPECT_LE(seen.findings[0].probability, 0.75);
  }
  // Of a goroutine beside the main one.
  const auto is_limit = [&](double reads_s, double parses_s, double decodes_s) {
    Go feeds;
    feeds.Samples("runtime.main;main.main;main.step", 1)
        .Samples("main.main.gowrap1;main.feed;strconv.Atoi", parses_s)
        .Samples("main.main.gowrap2;main.decode", decodes_s)
        .Stores("main.main.gowrap1;main.feed;os.(*File).Read", reads_s);
    const Outside seen = LookFromOutside(feeds.seen.view);
    EXPECT_TRUE(seen.findings[0].limit != OutsideLimit::kStorage || seen.culprit != 0);
    return seen.findings[0].limit == OutsideLimit::kStorage;
  };
  EXPECT_TRUE(is_limit(7, 2, 0));
  EXPECT_FALSE(is_limit(7, 0, 0)) << "a log, perhaps, that is written beside what limits";
  EXPECT_FALSE(is_limit(5.5, 3.5, 9.5)) << "what comes after it computes longer";
}

}  // namespace
}  // namespace headrace::analysis
