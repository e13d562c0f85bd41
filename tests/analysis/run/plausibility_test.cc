// Accounts are a program's own word: what cannot be true is not believed, and what can be is.
#include "analysis/run/plausibility.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>

#include "analysis/advice/statements.h"
#include "analysis/run/memory_bandwidth.h"
#include "tests/analysis/synthetic_run.h"

namespace headrace::analysis {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;

constexpr int64_t kSecond = 1'000'000'000;
constexpr int64_t kGarbage = int64_t{1} << 53;  // the most that the collector takes from a segment

// fetch and decode, with a lock; seen by the kernel with 2 threads on 2 cores.
RunView Honest() {
  SimulatedPipeline pipeline;
  pipeline.cores = 2;
  pipeline.stages = {{"fetch", 1, 4, {{"fetch", 0.001, 0.003, 0, 0, 0.2, -1}}},
                     {"decode", 1, 4, {{"decode", 0.002, 0.004, 0, 0.001, 0.1, 0}}}};
  pipeline.resources = {{"table", 1}};
  pipeline.consumer_s = 0.004;
  RunView run = Record(pipeline, 10, 5);
  double cpu_ns = 0;
  for (const OperatorRow& op : run.operators) cpu_ns += static_cast<double>(*op.on_cpu_ns);
  run.hosts = {{"process_threads_count", "count", "counter", 2, 2, 2, 2},
               {"process_cpu_ns", "ns", "counter", {}, {}, {}, cpu_ns},
               {"host_cores", "cores", "counter", 2, 2, 2, 2}};
  run.processes.resize(1);
  run.processes[0].has_accounts = true;
  return run;
}

TEST(Plausibility, AnHonestRunIsBelieved) {
  const RunView run = Honest();
  EXPECT_THAT(FindDoubts(run).lines, IsEmpty());
  EXPECT_TRUE(MakeStatements(run).bottleneck.has_value());
}

TEST(Plausibility, WhatCannotBeTrueIsNotBelieved) {
  const struct {
    const char* name;
    std::function<void(RunView*)> lie;
    const char* reason;
  } cases[] = {
      {"work", [](RunView* run) { run->operators[1].busy_ns = 900 * kSecond; },
       "the counters of stage decode claim 15.0 min of work in 10.0 s of 2 threads: not believed"},
      {"waiting", [](RunView* run) { run->operators[0].wait_in_ns = kGarbage; },
       "stage fetch claim 2502 h of waiting"},
      {"lifetime", [](RunView* run) { run->stages[0].lifetime_ns = 900 * kSecond; },
       "stage fetch claim 15.0 min of its threads' lives"},
      {"threads", [](RunView* run) { run->stages[0].last_parallelism_count = UINT32_MAX; },
       "stage fetch claim 4.29e+09 threads"},
      {"CPU time", [](RunView* run) { run->operators[0].on_cpu_ns = 50 * kSecond; },
       "operator fetch claim 50.0 s on a CPU"},
      {"CPU time of all",
       [](RunView* run) {
         run->hosts[1].last_value = 1e9;
         for (OperatorRow& op : run->operators) op.on_cpu_ns = 2 * kSecond;
       },
       "all operators claim 4.00 s on a CPU, of 1.00 s that the kernel counted"},
      {"elements", [](RunView* run) { run->operators[1].completions_count = kGarbage; },
       "operator decode claim 9.01e+15 elements"},
      {"rows", [](RunView* run) { run->operators[1].rows_count = kGarbage; }, "9.01e+15 rows"},
      {"bytes", [](RunView* run) { run->operators[1].bytes_out_bytes = kGarbage; },
       "9.01e+15 bytes out"},
      {"negative", [](RunView* run) { run->operators[1].rows_count = -5; },
       "a negative number of rows"},
      {"queue", [](RunView* run) { run->queues[0].full_ratio = 3; },
       "queue fetch.out claim to be full 300 % of the time"},
      {"puts", [](RunView* run) { run->queues[0].puts_count = kGarbage; }, "9.01e+15 puts"},
      {"lock", [](RunView* run) { run->resources[0].hold_ns = kGarbage; },
       "lock table claim 2502 h of holding it"},
      {"steps", [](RunView* run) { run->steps.wait_ns = kGarbage; },
       "the trainer's steps claim 2502 h of waiting"},
      {"step", [](RunView* run) { run->steps.step_p99_ns = kGarbage; }, "for one of them"},
  };
  for (const auto& c : cases) {
    SCOPED_TRACE(c.name);
    RunView run = Honest();
    c.lie(&run);
    const Doubts doubts = FindDoubts(run);
    ASSERT_TRUE(doubts.any());
    EXPECT_THAT(doubts.lines[0], HasSubstr(c.reason));
    const Statements statements = MakeStatements(run);
    EXPECT_EQ(statements.model, nullptr);
    EXPECT_FALSE(statements.bottleneck.has_value());
    EXPECT_EQ(statements.withheld, doubts.Summary());
  }
}

TEST(Plausibility, OneLieIsToldOnceAndOfItsOwner) {
  RunView run = Honest();
  run.operators[1].busy_ns = 900 * kSecond;
  run.operators[1].rows_count = kGarbage;
  const Doubts doubts = FindDoubts(run);
  EXPECT_THAT(doubts.lines, testing::SizeIs(1));
  EXPECT_THAT(doubts.operators[0], IsEmpty());
  EXPECT_THAT(doubts.operators[1], HasSubstr("stage decode"));
}

// What began before the recording, or threads that come and go between two looks, is no lie.
TEST(Plausibility, UnusualButPossibleIsBelieved) {
  const struct {
    const char* name;
    std::function<void(RunView*)> change;
  } cases[] = {
      {"one step that began long before the recording",
       [](RunView* run) {
         run->processes[0].started_ns = -7200 * kSecond;
         run->steps.wait_ns += 3600 * kSecond;
       }},
      {"a pool of threads that the kernel was not seen to run",
       [](RunView* run) { run->operators[1].busy_ns = 40 * kSecond; }},
      {"threads not counted",
       [](RunView* run) {
         run->hosts.clear();
         for (OperatorRow& op : run->operators) op.busy_ns = 1000 * kSecond;
       }},
      {"batches passed on by reference",
       [](RunView* run) { run->operators[1].bytes_out_bytes = int64_t{1} << 46; }},
  };
  for (const auto& c : cases) {
    SCOPED_TRACE(c.name);
    RunView run = Honest();
    c.change(&run);
    EXPECT_THAT(FindDoubts(run).lines, IsEmpty());
  }
}

TEST(Plausibility, BytesThatAreNotBelievedMakeNoBandwidth) {
  RunView run = Honest();
  ASSERT_TRUE(MemoryBandwidthOf(run).has_value());
  run.operators[0].bytes_in_bytes = kGarbage;
  EXPECT_FALSE(MemoryBandwidthOf(run).has_value());
}

TEST(Plausibility, LossesHaveALimit) {
  const RunView run = Honest();
  EXPECT_TRUE(IsPossibleCount(run, 1'000'000'000));
  EXPECT_FALSE(IsPossibleCount(run, kGarbage));
  EXPECT_FALSE(IsPossibleCount(run, -1));
}

}  // namespace
}  // namespace headrace::analysis
