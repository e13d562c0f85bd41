// What the first page says of a trainer's own thread, by its sampled functions: whether it loads,
// waits or is in its step, and what to do about each.
#include "dashboards/report/own_work_words.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "analysis/outside/outside.h"
#include "dashboards/report/first_page.h"
#include "dashboards/report/outside_advice.h"
#include "dashboards/report/outside_words.h"
#include "tests/analysis/outside_run.h"
#include "tests/dashboards/page_lines.h"

namespace headrace::dashboards {
namespace {

using analysis::Outside;
using analysis::OutsideLimit;
using testing::HasSubstr;

// A thread that nobody was seen to feed, and whose functions wait for batches, is fed by somebody.
TEST(OwnWorkWords, WhoWaitsForBatchesIsNotSaidToLoadThem) {
  analysis::OutsideRun run;
  run.Process(100, 1, "python", "python train.py").OnCpu(100, "python (main)", 0.1);
  run.Blocked(100, "python (main)", "lock", 0.9);
  const std::string main = "<module> (train.py:40, no loop);main (train.py:30, loop 28)";
  analysis::Sample("MainThread",
                   main + ";Queue.get (queue.py:171);Condition.wait (threading.py:327)", 9,
                   &run.view);
  analysis::Sample("MainThread", main + ";Tensor.backward (torch/_tensor.py:623)", 1, &run.view);
  const Outside seen = analysis::LookFromOutside(run.view);
  ASSERT_FALSE(seen.decided) << seen.LimitWord(seen.findings[0].limit);
  FirstPage page;
  AddOutsidePage(run.view, seen, &page);
  EXPECT_EQ(page.badge, "HIGHLY input-bound");
  EXPECT_THAT(page.verdict,
              HasSubstr("waits for batches 90.0 % of its time, by its sampled functions"));
  EXPECT_THAT(LineOf(page, "limit"), HasSubstr("who makes the batches that it waits for was not"));
  for (const PageLine& line : page.lines) EXPECT_NE(line.label, "fix") << line.text;
}

// One thread that sleeps: its functions say whether that is loading or its step, or they do not.
// The first line says nothing else than the line of the limit.
TEST(OwnWorkWords, TheFirstLineAndTheLimitAreOneJudgement) {
  const std::string loop = "main (train.py:30, loop 29);";
  const struct {
    const char* what;
    std::string function;  // empty: no stacks
    const char* badge;
    const char* limit;
    const char* fix;
    OutsideLimit found;
  } kCases[] = {{"not seen", "", "ONE THREAD",
                 "one thread that loads and computes in turn (python's main thread): it sleeps 9",
                 "if it loads data: load ahead in another process", OutsideLimit::kSleep},
                {"unknown", loop + "pause (train.py:9, no loop, sleeps)", "ONE THREAD",
                 "one thread that loads and computes in turn (python's main thread): it sleeps 9",
                 "if it loads data: load ahead in another process", OutsideLimit::kSleep},
                {"loading", loop + "load_rows (train.py:9, no loop, sleeps)", "HIGHLY input-bound",
                 "; loading 100 % (load_rows, train.py:9)", "load ahead in another process",
                 OutsideLimit::kSleep},
                {"the step", loop + "train_step (train.py:9, no loop, sleeps)", "NOT input-bound",
                 "the trainer, sleeping on a timer 9",
                 "nothing in the loading: it takes too little", OutsideLimit::kConsumer}};
  for (const auto& each : kCases) {
    SCOPED_TRACE(each.what);
    analysis::OutsideRun run;
    run.Process(100, 1, "python", "python train.py").OnCpu(100, "python (main)", 0.03);
    run.Blocked(100, "python (main)", "sleep", 0.97);
    if (!each.function.empty()) {
      analysis::Sample("MainThread", each.function, 10, &run.view);
    }
    const Outside seen = analysis::LookFromOutside(run.view);
    EXPECT_EQ(seen.findings[0].limit, each.found);
    EXPECT_TRUE(seen.decided);
    FirstPage page;
    AddOutsidePage(run.view, seen, &page);
    EXPECT_EQ(page.badge, each.badge) << page.verdict;
    Section facts;
    AddOutsideFacts(run.view, seen, &facts);
    const auto grade = std::find_if(facts.facts.begin(), facts.facts.end(),
                                    [](const Fact& fact) { return fact.key == "grade"; });
    EXPECT_EQ(grade == facts.facts.end(), page.badge == "ONE THREAD") << "as line 1 has it";
    EXPECT_THAT(LineOf(page, "limit"), HasSubstr(each.limit));
    EXPECT_THAT(LineOf(page, "fix"), testing::StartsWith(each.fix));
    // Nothing that trains is called something else on the same page.
    std::string text = page.verdict;
    for (const PageLine& line : page.lines) text += "\n" + line.text;
    const bool trains = seen.ConsumerName() == std::string("trainer");
    EXPECT_THAT(text, testing::Not(HasSubstr(trains ? "consumer" : "trainer")));
  }
}

// Where it is decided neither way, no advice says that it is.
TEST(OwnWorkWords, HalfLoadingAndHalfItsStepHasNoAdviceForOneOfThem) {
  analysis::OutsideRun run;
  run.Process(100, 1, "python", "python train.py").OnCpu(100, "python (main)", 0.99);
  analysis::Sample("MainThread", "main (train.py:30, loop 29);shape (train.py:9, no loop)", 10,
                   &run.view);
  const Outside seen = analysis::LookFromOutside(run.view);
  EXPECT_FALSE(seen.decided);
  EXPECT_THAT(Advice(run.view, seen), testing::StartsWith("if it loads data: load ahead in"));
}

TEST(OwnWorkWords, EachOperatorOfTheTrainersThreadHasItsAdvice) {
  Outside seen = analysis::LookFromOutside(analysis::Loader(2, 0.15, 0.8, 0.95, 0, 0.03).view);
  const struct {
    const char* name;
    const char* advice;
  } kCases[] = {
      {"sampler", "Make the sampler cheaper"},
      {"unpickle", "Send fewer and larger objects, as tensors"},
      {"start_workers",
       "persistent_workers=True, and one DataLoader for all epochs: workers are started again"},
      {"pin_memory", "pin_memory=False, or fewer and larger tensors"},
      {"getitem", "num_workers 0 -> 1 or more, so that loading runs beside the step"},
      {"collate", "num_workers 0 -> 1 or more, or a cheaper collate_fn"},
      {"", "Move this work into the processes that load"}};
  analysis::PythonTime& python = seen.python.emplace();
  python.function = "load (train.py:12)";
  for (const auto& each : kCases) {
    python.operator_name = each.name;
    const std::string advice = AdviceForOwnWork(seen);
    EXPECT_THAT(advice, HasSubstr(each.advice));
    EXPECT_THAT(advice, testing::EndsWith(" (load, train.py:12)"));
  }
  seen.units.resize(1);
  EXPECT_THAT(AdviceForOwnWork(seen), HasSubstr("Load ahead, in another process or in a thread"));
  python.operator_name = "next";
  EXPECT_THAT(AdviceForOwnWork(seen), HasSubstr("more only if the data set divides itself"));
  python.operator_name = "unpickle";
  python.function = "_ConnectionBase.recv_bytes (multiprocessing/connection.py:216)";
  EXPECT_THAT(AdviceForOwnWork(seen), HasSubstr("torch tensors in place of arrays"));
}

TEST(OwnWorkWords, TheTrainersThreadIsNamedByItsFunctions) {
  Outside seen;
  analysis::PythonTime& python = seen.python.emplace();
  python.function = "load (train.py:12)";
  EXPECT_EQ(OwnWorkWord(seen, "the trainer"),
            "the trainer's own thread, loading in load, train.py:12");
  python.operator_name = "collate";
  EXPECT_EQ(OwnWorkWord(seen, "the trainer"), "the trainer's own thread, operator collate");
  python.operator_name = "start_workers";
  EXPECT_EQ(OwnWorkWord(seen, "the trainer"),
            "the start of the workers, in the trainer's own thread");
  python.seconds = 10;
  python.loads_s = 6;
  python.waits_s = 1;
  python.step_s = 2;
  python.unknown_s = 1;
  EXPECT_EQ(
      SampledWords(python),
      "By its sampled functions it loads 60.0 % of its time (load, train.py:12), waits 10.0 % "
      "and is in its step 20.0 %; 10.0 % may be either.");
  python.has_loader = true;  // what is unknown is done with its batches
  EXPECT_THAT(SampledWords(python), testing::EndsWith("and is in its step 30.0 %."));
}

// A thread that nothing feeds says where it computes, and what for.
TEST(OwnWorkWords, NewMemoryIsNamedWithAdvice) {
  analysis::OutsideRun run;
  run.Process(100, 1, "feed", "./feed").OnCpu(100, "feed (main)", 0.99);
  const std::string root = "feed;_start;__libc_start_call_main;main;Grid::Fill;";
  analysis::SampleOnCpu("feed", root + "__memset_avx2;[kernel]", 6, &run.view);
  analysis::SampleOnCpu("feed", root + "sum", 4, &run.view);
  FirstPage page;
  AddOutsidePage(run.view, analysis::LookFromOutside(run.view), &page);
  EXPECT_EQ(LineOf(page, "limit"),
            "one thread that loads and computes in turn (feed's main thread, most of it in "
            "Grid::Fill); 60.0 % of its time on a CPU is for new memory");
  EXPECT_THAT(LineOf(page, "fix"), HasSubstr("keep memory for the next batch"));
  EXPECT_THAT(LineOf(page, "fix"), HasSubstr("Or, if it loads data"));
}

}  // namespace
}  // namespace headrace::dashboards
