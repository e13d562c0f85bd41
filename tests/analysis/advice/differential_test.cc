// The third opinion: what runs that differ in one thing say, and when they must say nothing.
#include "analysis/advice/differential.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "analysis/advice/statements.h"
#include "analysis/model/bottleneck.h"
#include "tests/analysis/synthetic_run.h"

namespace headrace::analysis {
namespace {

using testing::HasSubstr;

// Reading limits: 10 ms a batch on one thread, and the consumer would take 200 a second.
SimulatedPipeline Reading(double read_s, double consumer_s) {
  SimulatedPipeline pipeline;
  pipeline.cores = 4;
  pipeline.stages = {{"fetch", 1, 4, {{"fetch", 0.0005, read_s, 0, 0, 0.1, -1}}},
                     {"decode", 1, 4, {{"decode", 0.004, 0, 0, 0, 0.1, -1}}}};
  pipeline.consumer_s = consumer_s;
  return pipeline;
}

// A run of a table, of whose bytes a device delivered that share.
RunView Recorded(const SimulatedPipeline& pipeline, double device_ratio) {
  RunView run = Record(pipeline, 10, 5);
  run.operators[0].kind = "fetch";
  OperatorRow io;
  io.name = "fetch.io";
  io.kind = "io";
  io.stage = "fetch";
  io.on_cpu_ns = 0;
  for (WindowRow& window : run.windows) {
    window.operators.insert(window.operators.begin() + 1, OperatorCounters());
    window.operators[1].on_cpu_ns = 0;
  }
  run.operators.insert(run.operators.begin() + 1, io);
  run.run.settings_text = "decode.parallelism=1";
  run.run.table_text = "1 files, 1000 bytes, 0";
  run.run.resident_ratio = 1 - device_ratio;
  run.run.kind = "pipeline";
  run.fetched_bytes = 1'000'000'000;
  run.device_bytes = static_cast<int64_t>(device_ratio * 1e9);
  return run;
}

SiblingRow Sibling(int64_t id, const char* kind, double rate, double device_ratio) {
  SiblingRow sibling;
  sibling.run_id = id;
  sibling.kind = kind;
  sibling.fetched_bytes = 1'000'000'000;
  sibling.device_bytes = static_cast<int64_t>(device_ratio * 1e9);
  for (int w = 0; w < 20; ++w) {
    sibling.windows.push_back({1'000'000'000, std::llround(rate)});
  }
  return sibling;
}

Differential Found(const RunView& run) {
  const Statements statements = MakeStatements(run);
  EXPECT_TRUE(statements.differential.has_value()) << statements.withheld;
  return statements.differential.value_or(Differential());
}

TEST(Differential, SplitsABatchIntoConsumerPrepAndFetch) {
  // 95 batches a second from the device here, 125 from memory, 200 without input.
  RunView run = Recorded(Reading(0.010, 0.005), 1.0);
  run.siblings = {Sibling(8, "ceiling", 200, 0), Sibling(7, "pipeline", 125, 0.01)};
  const Differential found = Found(run);
  EXPECT_EQ(found.state, ReadState::kCold);
  ASSERT_TRUE(found.consumer && found.prep && found.fetch && found.cold && found.input_bound);
  EXPECT_TRUE(found.cold->own);
  const double cold = found.cold->rate;
  EXPECT_NEAR(found.consumer->value, cold / 200, 0.01);
  EXPECT_NEAR(found.prep->value, cold / 125 - cold / 200, 0.01);
  EXPECT_NEAR(found.fetch->value, 1 - cold / 125, 0.01);
  EXPECT_NEAR(found.consumer->value + found.prep->value + found.fetch->value, 1, 1e-9);
  EXPECT_NEAR(found.input_bound->value, 1 - cold / 200, 0.01);
  for (const auto& share : {found.consumer, found.prep, found.fetch}) {
    EXPECT_LT(share->interval.low, share->value);
    EXPECT_GT(share->interval.high, share->value);
  }
  EXPECT_TRUE(found.missing.empty());
}

TEST(Differential, EachOpinionAndWhomItContradicts) {
  const struct {
    const char* name;
    double read_s, consumer_s, device_ratio;
    double ceiling, other;  // batches a second; 0: no such run
    std::optional<InputOpinion> opinion;
    bool disagrees;  // with the model, which blames fetch where reading is slow
  } cases[] = {
      {"fetching", 0.010, 0.005, 1.0, 198, 190, InputOpinion::kFetching, false},
      {"preparing, cold", 0.010, 0.005, 1.0, 198, 96, InputOpinion::kPreparing, true},
      {"preparing, warm", 0.010, 0.005, 0.0, 198, 0, InputOpinion::kPreparing, false},
      {"the consumer all along", 0.010, 0.005, 0.0, 93, 0, InputOpinion::kConsumer, true},
      {"the consumer", 0.001, 0.020, 0.0, 50, 0, InputOpinion::kConsumer, false},
      {"not the consumer", 0.001, 0.020, 0.0, 99, 0, InputOpinion::kPreparing, true},
      {"cold without a warm run", 0.010, 0.005, 1.0, 198, 0, std::nullopt, false},
      {"neither warm nor cold", 0.010, 0.005, 0.4, 198, 150, std::nullopt, false},
      {"no other run", 0.010, 0.005, 1.0, 0, 0, std::nullopt, false},
  };
  for (const auto& c : cases) {
    SCOPED_TRACE(c.name);
    RunView run = Recorded(Reading(c.read_s, c.consumer_s), c.device_ratio);
    if (c.ceiling > 0) run.siblings.push_back(Sibling(8, "ceiling", c.ceiling, 0));
    if (c.other > 0) run.siblings.push_back(Sibling(7, "pipeline", c.other, 0.01));
    const Differential found = Found(run);
    EXPECT_EQ(found.opinion, c.opinion) << found.because;
    EXPECT_EQ(!found.disagreement.empty(), c.disagrees) << found.disagreement;
    if (c.opinion) {
      EXPECT_NE(found.because, "");
    }
  }
}

TEST(Differential, WarmAndColdAreMeasuredAndNeverMixed) {
  const struct {
    double device_ratio;
    ReadState state;
  } cases[] = {{0, ReadState::kWarm},     {0.05, ReadState::kWarm}, {0.06, ReadState::kMixed},
               {0.79, ReadState::kMixed}, {0.8, ReadState::kCold},  {1.1, ReadState::kCold}};
  for (const auto& c : cases) {
    RunView run = Recorded(Reading(0.010, 0.005), c.device_ratio);
    EXPECT_EQ(ReadStateOf(run), c.state) << c.device_ratio;
    // An option is no measurement: a run that was asked to be cold and was not stands nowhere.
    run.siblings = {Sibling(9, "pipeline", 100, 0.5), Sibling(8, "pipeline", 50, 0.5)};
    run.siblings[0].cold = 1;
    const Differential found = Found(run);
    EXPECT_EQ(found.warm.has_value(), c.state == ReadState::kWarm);
    EXPECT_EQ(found.cold.has_value(), c.state == ReadState::kCold);
    EXPECT_FALSE(found.fetch.has_value());
  }
  RunView run = Recorded(Reading(0.010, 0.005), 0);
  run.device_bytes.reset();
  EXPECT_EQ(ReadStateOf(run), ReadState::kUnknown);
  run.run.table_text.clear();
  run.run.resident_ratio.reset();
  EXPECT_EQ(ReadStateOf(run), ReadState::kNone) << "remote storage";
}

TEST(Differential, AWarmRunSlowerThanTheColdOneTellsNothing) {
  // About 95 batches a second from the device here.
  const struct {
    const char* name;
    double warm;
    bool contrary;
  } cases[] = {
      {"far slower", 60, true}, {"as fast within noise", 93, false}, {"faster", 120, false}};
  for (const auto& c : cases) {
    SCOPED_TRACE(c.name);
    RunView run = Recorded(Reading(0.010, 0.005), 1.0);
    run.siblings = {Sibling(8, "ceiling", 198, 0), Sibling(7, "pipeline", c.warm, 0.01)};
    const Differential found = Found(run);
    EXPECT_EQ(found.because.find("was slower than") != std::string::npos, c.contrary);
    EXPECT_EQ(found.prep.has_value(), !c.contrary);
    EXPECT_EQ(found.fetch.has_value(), !c.contrary);
    if (c.contrary) {
      EXPECT_FALSE(found.opinion.has_value());
      EXPECT_THAT(found.because, HasSubstr("run 7, from memory"));
    }
    for (const auto& share : {found.consumer, found.prep, found.fetch, found.input_bound}) {
      if (!share) continue;
      EXPECT_LE(share->value, 1);
      EXPECT_LE(share->interval.high, 1);
    }
  }
  // A ceiling that is slower than the run by chance leaves all of the time to the consumer.
  RunView run = Recorded(Reading(0.010, 0.005), 0);
  run.siblings = {Sibling(8, "ceiling", 80, 0)};
  EXPECT_EQ(Found(run).consumer->value, 1);
}

TEST(Differential, TheNewestOfEachKindCounts) {
  RunView run = Recorded(Reading(0.010, 0.005), 0);
  run.siblings = {Sibling(9, "ceiling", 190, 0), Sibling(8, "ceiling", 100, 0),
                  Sibling(7, "pipeline", 60, 1), Sibling(6, "pipeline", 20, 1),
                  Sibling(5, "", 500, 1)};
  const Differential found = Found(run);
  ASSERT_TRUE(found.ceiling && found.cold);
  EXPECT_EQ(found.ceiling->run_id, 9);
  EXPECT_EQ(found.cold->run_id, 7);
  EXPECT_EQ(found.warm->run_id, run.run.run_id);
}

TEST(Differential, SaysWhichCommandsWouldMakeTheMissingRuns) {
  RunView run = Recorded(Reading(0.010, 0.005), 0);
  run.database_option = " --db a.db";
  run.run.settings_text = "consumer.step=5ms\ndecode.parallelism=2";
  const Differential found = Found(run);
  ASSERT_EQ(found.missing.size(), 2u);
  EXPECT_EQ(found.missing[0].command,
            "headrace run pipeline.toml --ceiling --set consumer.step=5ms --set "
            "decode.parallelism=2 --duration 10s --db a.db");
  EXPECT_THAT(found.missing[1].command, HasSubstr(" --cold "));
  run.run.settings_text.reset();
  EXPECT_TRUE(Found(run).missing.empty()) << "its conditions are not known";
}

TEST(Differential, AsksForNoRunThatCannotBe) {
  const struct {
    const char* name;
    std::map<std::string, std::string> settings;  // in force
    const char* work;
    double device_ratio;
    // What commands there are for: parts of them; empty: there is none, for the reason.
    const char *ceiling, *other, *reason;
  } cases[] = {
      {"plain", {}, "", 0, "--ceiling", "--cold", ""},
      {"delivered elsewhere",
       {{"delivery.to", "unix:/run/x"}},
       "",
       0,
       "",
       "--cold",
       "another process"},
      {"delivered here", {{"delivery.to", "inline"}}, "", 0, "--ceiling", "--cold", ""},
      {"direct", {{"source.direct", "true"}}, "", 1, "--ceiling", "", "source.direct"},
      {"cold", {{"source.cold", "true"}}, "", 1, "--ceiling", "--set source.cold=false", ""},
      {"hashed", {}, "--checksum", 1, "", "pipeline.toml --checksum --duration", "needs rows"},
      {"written down", {}, "--checksum --row-log", 1, "", "", "other files"},
  };
  for (const auto& c : cases) {
    SCOPED_TRACE(c.name);
    RunView run = Recorded(Reading(0.010, 0.005), c.device_ratio);
    run.run.settings_text = "";
    run.run.settings = c.settings;
    run.added_work = c.work;
    const Differential found = Found(run);
    ASSERT_EQ(found.missing.size(), 2u);
    const char* const parts[] = {c.ceiling, c.other};
    std::string reasons;
    for (size_t m = 0; m < 2; ++m) {
      EXPECT_EQ(found.missing[m].command.empty(), *parts[m] == '\0') << found.missing[m].command;
      EXPECT_THAT(found.missing[m].command, HasSubstr(parts[m]));
      if (found.missing[m].command.empty()) reasons += found.missing[m].what;
    }
    EXPECT_THAT(reasons, HasSubstr(c.reason));
  }
  RunView run = Recorded(Reading(0.010, 0.005), 0);
  run.run.accounting_level = 1;
  run.run.deep = 1;
  EXPECT_THAT(Found(run).missing[0].command, HasSubstr(" --level 1 --deep "));
}

TEST(Differential, WhereThreeOpinionsDifferNothingIsDecided) {
  // decode's lock limits, the waits point elsewhere, and the runs at the consumer.
  RunView run = Recorded(Reading(0.010, 0.005), 0);
  Statements statements = MakeStatements(run);
  ASSERT_TRUE(statements.bottleneck.has_value());
  ASSERT_NE(statements.bottleneck->verdict, Verdict::kUndecided);
  run.siblings = {Sibling(8, "ceiling", 93, 0)};
  statements = MakeStatements(run);
  EXPECT_NE(statements.differential->disagreement, "");
  EXPECT_TRUE(statements.differential->against_witness);
  // Two against one: the demands and the waits agree, so the verdict stands, and the third is said.
  EXPECT_EQ(statements.bottleneck->disagreement, "");
  EXPECT_NE(statements.bottleneck->verdict, Verdict::kUndecided);
}

TEST(Differential, ACeilingRunIsNoPipelineToJudge) {
  RunView run = Recorded(Reading(0.010, 0.005), 0);
  run.run.kind = "ceiling";
  const Statements statements = MakeStatements(run);
  EXPECT_FALSE(statements.bottleneck.has_value());
  EXPECT_THAT(statements.withheld, HasSubstr("repeated one batch"));
}

}  // namespace
}  // namespace headrace::analysis
