// What to do next: advice where it is sure to gain, what would decide it where it is not.
#include "analysis/advice/next_step.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "analysis/advice/recommendations.h"
#include "analysis/model/bottleneck.h"
#include "analysis/thresholds.h"
#include "tests/analysis/synthetic_run.h"

namespace headrace::analysis {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

RunView Fetching(double consumer_s) {
  SimulatedPipeline pipeline;
  pipeline.cores = 4;
  pipeline.stages = {{"fetch", 1, 4, {{"fetch", 0.0002, 0.008, 0, 0, 0.2, -1}}},
                     {"decode", 1, 4, {{"decode", 0.002, 0, 0, 0, 0.2, -1}}}};
  pipeline.consumer_s = consumer_s;
  RunView run = Record(pipeline, 10, 3);
  run.run.settings_text = "";
  return run;
}

TEST(NextStep, AClearGainIsAdvised) {
  const RunView run = Fetching(0.002);
  const Statements statements = MakeStatements(run);
  const NextStep next = NextStepOf(run, statements);
  EXPECT_EQ(next.kind, NextKind::kChange);
  EXPECT_THAT(next.text, HasSubstr("fetch threads 1 -> "));
  EXPECT_THAT(next.command, HasSubstr(" apply 1"));
}

RunView OnCores(double count) {
  RunView run;
  HostRow cores;
  cores.metric = "host_cores";
  cores.last_value = count;
  run.hosts.push_back(cores);
  return run;
}

Change ChangeOf(const char* knob, int from, int to) {
  Change change;
  change.knob = knob;
  change.from = from;
  change.to = to;
  return change;
}

// What the import hook of the Python package sees is called as its users write it.
TEST(ChangeWords, SettingsOfPythonsLoaders) {
  RunView run = OnCores(4);
  QueueRow ahead;
  ahead.producer_stage = "tf.data prefetch";
  run.queues.push_back(ahead);
  const struct {
    const char* knob;
    int from, to;
    const char* expected;
  } kCases[] = {
      {"Pool.parallelism", 2, 4, "Pool processes 2 -> 4"},
      {"tf.data map.parallelism", 2, 4, "map num_parallel_calls 2 -> 4"},
      {"tf.data map.parallelism", 2, 8,
       "map num_parallel_calls 2 -> 8 with options.threading.private_threadpool_size=8"},
      {"tf.data.parallelism", 0, 2, "num_parallel_calls=2 and prefetch(tf.data.AUTOTUNE)"},
      {"tf.data.parallelism", 0, 8,
       "num_parallel_calls=8 and prefetch(tf.data.AUTOTUNE) with "
       "options.threading.private_threadpool_size=8"},
      {"tf.data after prefetch.parallelism", 0, 2,
       "num_parallel_calls=2 and prefetch(tf.data.AUTOTUNE) at the end"},
      {"tf.data.parallelism", 1, 2, "num_parallel_calls 1 -> 2"},
      {"tf.database.parallelism", 1, 2, "tf.database threads 1 -> 2"},
      {"tf.data prefetch.queue", 2, 8, "prefetch 2 -> 8"},
      {"tf.data map.queue", 4, 32, ""},  // no queue of it was seen
      {"ray.data MapBatches(Decode).parallelism", 1, 3, "MapBatches(Decode) concurrency 1 -> 3"},
      {"ray.database.parallelism", 1, 3, "ray.database threads 1 -> 3"},
  };
  for (const auto& one : kCases) {
    SCOPED_TRACE(one.knob);
    Allocation plan;
    plan.changes.push_back(ChangeOf(one.knob, one.from, one.to));
    EXPECT_EQ(ChangeWords(run, plan), one.expected);
  }
}

// All of tf.data's calls share one pool, and several of its stages have the same setting.
TEST(ChangeWords, OfSeveralStagesEachIsNamedAndThePoolOnce) {
  RunView run = OnCores(4);
  Allocation plan;
  plan.changes = {ChangeOf("tf.data map.parallelism", 1, 8),
                  ChangeOf("tf.data map 2.parallelism", 2, 6),
                  ChangeOf("tf.data interleave.parallelism", 2, 2)};  // in the pool as well
  EXPECT_EQ(ChangeWords(run, plan),
            "map num_parallel_calls 1 -> 8, map 2 num_parallel_calls 2 -> 6 with "
            "options.threading.private_threadpool_size=16");
}

// The plan is for all ranks together; each has a pool of its own, of as many threads as cores.
TEST(ChangeWords, ThePoolOfARankIsForItsOwnCalls) {
  RunView run = OnCores(16);
  OperatorRow step;
  step.stage = "trainer";
  step.kind = "consumer";
  run.operators.push_back(step);
  StageRow trainers;
  trainers.name = "trainer";
  trainers.last_parallelism_count = 4;
  run.stages.push_back(trainers);
  Allocation plan;
  plan.changes = {ChangeOf("tf.data map.parallelism", 8, 32)};
  EXPECT_EQ(ChangeWords(run, plan), "map num_parallel_calls 2 -> 8 in each of 4 ranks");
  plan.changes = {ChangeOf("tf.data map.parallelism", 8, 80)};
  EXPECT_EQ(ChangeWords(run, plan),
            "map num_parallel_calls 2 -> 20 with options.threading.private_threadpool_size=20 in "
            "each of 4 ranks");
}

// A run with the planned settings, of the same work, that brought nothing.
TEST(NextStep, APlanThatWhatWasTriedBeforeIsNotAdvisedAgain) {
  RunView run = Fetching(0.002);
  const Statements plain = MakeStatements(run);
  const Allocation& plan = *plain.allocation;
  std::map<std::string, std::string> now = {{"fetch.parallelism", "1"}, {"decode.queue", "4"}};
  std::map<std::string, std::string> then = now;
  for (const Change& change : plan.changes) {
    now[change.knob] = std::to_string(change.from);
    then[change.knob] = std::to_string(change.to);
  }
  const auto with = [&](double gain, std::map<std::string, std::string> knobs) {
    run.tried = {{run.run.run_id, 1000, now}, {7, 1000 * (1 + gain), std::move(knobs)}};
    return NextStepOf(run, plain);
  };
  const NextStep short_of = with(-0.03, then);
  EXPECT_EQ(short_of.kind, NextKind::kCompare);
  EXPECT_THAT(short_of.text, HasSubstr("run 7 had these settings and brought -3 %"));
  for (const Recommendation& one : Recommend(run, plain)) {
    if (one.id == "R2") {
      EXPECT_EQ(one.advice, Advice::kTry);
      EXPECT_THAT(one.why, HasSubstr("Run 7"));
    }
  }
  EXPECT_EQ(with(plan.predicted / plan.now - 1, then).kind, NextKind::kChange) << "it held";
  then["decode.queue"] = "9";
  EXPECT_EQ(with(-0.03, then).kind, NextKind::kChange) << "other settings say nothing of these";
}

TEST(NextStep, AGainThatMayBeNoneIsForAComparison) {
  const RunView run = Fetching(0.002);
  Statements statements = MakeStatements(run);
  ASSERT_TRUE(statements.allocation->shown());
  statements.allocation->predicted = 1.04 * statements.allocation->now;
  statements.allocation->gain_interval = {-0.12, 0.18};
  EXPECT_FALSE(statements.allocation->shown());
  const NextStep next = NextStepOf(run, statements);
  EXPECT_EQ(next.kind, NextKind::kCompare);
  EXPECT_THAT(next.text, HasSubstr("+4 % [-12, 18]"));
  EXPECT_THAT(next.command, HasSubstr(" apply 1"));
  EXPECT_THAT(next.command, Not(HasSubstr("--plan")));
  RunView own = run;
  own.run.pipeline_path.clear();
  const NextStep in_own = NextStepOf(own, statements);
  EXPECT_THAT(in_own.text, HasSubstr("Try it, record that run and compare the two."));
  EXPECT_THAT(in_own.command, HasSubstr(" plan 1")) << "what to try is shown there";
  for (const Recommendation& one : Recommend(run, statements)) {
    if (one.id != "R2") continue;
    EXPECT_EQ(one.advice, Advice::kTry);
    EXPECT_THAT(one.record, HasSubstr("compared"));
  }
  statements.allocation->predicted = 0.9 * statements.allocation->now;
  statements.allocation->gain_interval = {-0.2, 0.02};
  EXPECT_NE(NextStepOf(run, statements).kind, NextKind::kCompare) << "it may as well lose";
}

// More processes of a pool pack as much for each result; that they gain was never sure.
TEST(NextStep, APoolThatMostlyPacksItsResultsIsToldToReturnLess) {
  for (const bool packs : {true, false}) {
    SimulatedPipeline pipeline;
    pipeline.cores = 4;
    pipeline.stages = {{"Pool",
                        2,
                        4,
                        {{"beat", packs ? 0.001 : 0.008, 0, 0, 0, 0.2, -1},
                         {"send", packs ? 0.008 : 0.001, 0, 0, 0, 0.2, -1}}}};
    pipeline.consumer_s = 0.0005;
    RunView run = Record(pipeline, 10, 3);
    run.run.pipeline_path.clear();
    for (OperatorRow& op : run.operators) {
      if (op.name == "send") op.kind = "serialize";
      if (op.name == "beat") op.kind = "call";
    }
    Statements statements = MakeStatements(run);
    ASSERT_TRUE(statements.allocation);
    ASSERT_FALSE(statements.allocation->changes.empty());
    statements.allocation->gain_interval = {-0.28, 0.6};
    const NextStep next = NextStepOf(run, statements);
    EXPECT_EQ(next.kind, packs ? NextKind::kWork : NextKind::kCompare);
    EXPECT_EQ(next.text.starts_with("Return less from each task"), packs) << next.text;
  }
}

// The page asked for an experiment. Once it was made the page says what it brought.
TEST(NextStep, AnExperimentThatWasMadeIsRemembered) {
  RunView run = Fetching(0.002);
  Statements statements = MakeStatements(run);
  Allocation& plan = *statements.allocation;
  plan.gain_interval = {-0.28, 6};
  plan.unknown_store = "fetch";
  std::map<std::string, std::string> now, then;
  for (const Change& change : plan.changes) {
    now[change.knob] = std::to_string(change.from);
    then[change.knob] = std::to_string(change.to);
  }
  EXPECT_THAT(NextStepOf(run, statements).text, HasSubstr("may have no more to give"));
  run.tried = {{run.run.run_id, 1000, now}, {7, 1980, then}};
  const NextStep next = NextStepOf(run, statements);
  EXPECT_EQ(next.kind, NextKind::kCompare);
  EXPECT_THAT(next.text, HasSubstr("Run 7 had these settings and brought +98 %."));
  EXPECT_THAT(next.text, Not(HasSubstr("may have no more to give")));
  run.tried[1].rows_per_s = 800;
  const NextStep none = NextStepOf(run, statements);
  EXPECT_EQ(none.kind, NextKind::kWork);
  EXPECT_THAT(none.text, AllOf(HasSubstr("No setting is known to help. "),
                               HasSubstr("Run 7 had these settings and brought -20 %.")));
  EXPECT_EQ(none.command, "");
}

// What a comparison found replaces the request to make it.
TEST(NextStep, WhatWasMeasuredIsNotAskedForAgain) {
  RunView run = Fetching(0.002);
  run.program = "headrace";
  Statements statements = MakeStatements(run);
  Allocation& plan = *statements.allocation;
  plan.gain_interval = {-0.28, 6};
  std::map<std::string, std::string> now, then;
  for (const Change& change : plan.changes) {
    now[change.knob] = std::to_string(change.from);
    then[change.knob] = std::to_string(change.to);
  }
  run.tried = {{run.run.run_id, 1000, now}, {7, 1980, then}};
  const auto with = [&](MeasuredRow measured) {
    run.measured = {std::move(measured)};
    return NextStepOf(run, statements);
  };
  const NextStep faster = with({3, "faster", now, then, 4, 0.96, 0.9, 1.01});
  EXPECT_EQ(faster.kind, NextKind::kChange);
  EXPECT_TRUE(faster.measured);
  EXPECT_THAT(faster.text, HasSubstr("measured +96 % [90, 101] in 4 pairs of runs (comparison 3)"));
  EXPECT_THAT(faster.text, AllOf(Not(HasSubstr("Measure")), Not(HasSubstr("predicted"))));
  EXPECT_THAT(faster.command, HasSubstr("headrace run "));
  EXPECT_THAT(faster.command, HasSubstr(" --set " + plan.changes[0].knob + "="));
  const NextStep same = with({3, "same", now, then, 4, 0.001, -0.01, 0.02});
  EXPECT_EQ(same.kind, NextKind::kWork);
  EXPECT_THAT(same.text, HasSubstr("This was measured and does not help: "));
  EXPECT_THAT(same.command, HasSubstr("compare --show 3"));
  const NextStep open = with({3, "cannot_tell", now, then, 4, 0.02, {}, {}});
  EXPECT_EQ(open.kind, NextKind::kCompare);
  EXPECT_THAT(open.text, HasSubstr("measured +2 % in 4 pairs of runs (comparison 3)"));
  EXPECT_THAT(open.command, HasSubstr(" apply 1 --pairs 12"));
  const NextStep reversed = with({3, "slower", then, now, 4, -0.5, -0.6, -0.2});
  EXPECT_EQ(reversed.kind, NextKind::kChange);
  EXPECT_THAT(reversed.text, HasSubstr("measured +100 % [25, 150]"));
  then[plan.changes[0].knob] = "77";
  EXPECT_FALSE(with({3, "faster", now, then, 4, 0.96, 0.9, 1.01}).measured)
      << "other settings say nothing of these";
}

TEST(NextStep, RecommendationsKnowWhatWasMeasured) {
  RunView run = Fetching(0.002);
  const Statements statements = MakeStatements(run);
  std::map<std::string, std::string> now, then;
  for (const Change& change : statements.allocation->changes) {
    now[change.knob] = std::to_string(change.from);
    then[change.knob] = std::to_string(change.to);
  }
  run.tried = {{run.run.run_id, 1000, now}, {7, 500, then}};
  const auto threads = [&](const char* verdict) {
    run.measured = {{3, verdict, now, then, 4, 0.1, 0.05, 0.2}};
    for (Recommendation& one : Recommend(run, statements))
      if (one.id == "R2") return one;
    return Recommendation();
  };
  EXPECT_EQ(threads("faster").advice, Advice::kFires);
  EXPECT_THAT(threads("faster").why, HasSubstr("measured +10 % [5, 20] in 4 pairs"));
  EXPECT_EQ(threads("slower").advice, Advice::kDoesNotFire);
  EXPECT_EQ(threads("cannot_tell").advice, Advice::kTry);
}

// A command that is printed is one that works.
TEST(NextStep, ApplyIsNamedOnlyWhereItCanRunThePipelineAgain) {
  const auto command = [](auto change) {
    RunView run = Fetching(0.002);
    change(&run.run);
    return NextStepOf(run, MakeStatements(run)).command;
  };
  EXPECT_THAT(command([](RunRow*) {}), HasSubstr(" apply 1"));
  EXPECT_THAT(command([](RunRow* run) { run->pipeline_path.clear(); }), HasSubstr(" plan 1"));
  EXPECT_THAT(command([](RunRow* run) { run->settings_text.reset(); }), HasSubstr(" plan 1"));
  EXPECT_THAT(command([](RunRow* run) { run->settings["delivery.to"] = "unix:/tmp/s"; }),
              HasSubstr(" plan 1"));
  EXPECT_THAT(command([](RunRow* run) { run->settings_text = "decode.parallelism=2"; }),
              HasSubstr(" apply 1"));
}

TEST(NextStep, AComparisonHasWhatTheRunHadSet) {
  RunView run = Fetching(0.002);
  run.run.settings_text = "consumer.step=5ms\nname=it's";
  const Statements statements = MakeStatements(run);
  EXPECT_THAT(CompareCommand(run, *statements.allocation),
              HasSubstr(" --set consumer.step=5ms --set 'name=it'"));
}

// What was measured does not explain the rate: then no prediction from it is advice.
TEST(NextStep, WithoutAnExplanationNothingIsAdvised) {
  const RunView run = Fetching(0.002);
  Statements statements = MakeStatements(run);
  ASSERT_TRUE(statements.allocation->shown());
  statements.bottleneck->verdict = Verdict::kUndecided;
  statements.bottleneck->unexplained = true;
  statements.bottleneck->measure = "record one pipeline at a time";
  const NextStep next = NextStepOf(run, statements);
  EXPECT_THAT(next.text, HasSubstr("record one pipeline at a time"));
  EXPECT_EQ(next.command, "");
}

TEST(NextStep, NothingIsToDoOnlyWhereThePipelineKeepsUp) {
  const RunView keeps = Fetching(0.02);
  const Statements fine = MakeStatements(keeps);
  EXPECT_EQ(NextStepOf(keeps, fine).kind, NextKind::kNothing);
  // The consumer has the smallest bound and waits: its steps vary, and queues are short.
  SimulatedPipeline pipeline;
  pipeline.cores = 4;
  pipeline.stages = {{"fetch", 1, 1, {{"fetch", 0.0002, 0.0057, 0, 0, 1, -1}}}};
  pipeline.stages[0].operators[0].resource = -1;
  pipeline.consumer_s = 0.0065;
  pipeline.consumer_cv = 1.5;
  RunView bursts = Record(pipeline, 20, 4);
  bursts.stages[0].max_parallelism_count = 1;
  const Statements statements = MakeStatements(bursts);
  ASSERT_GT(statements.model->stall_ratio(), kSmallStall);
  EXPECT_NE(statements.bottleneck->verdict, Verdict::kConsumer);
  const NextStep next = NextStepOf(bursts, statements);
  EXPECT_NE(next.kind, NextKind::kNothing);
  EXPECT_THAT(next.text, Not(HasSubstr("keeps up")));
}

}  // namespace
}  // namespace headrace::analysis
