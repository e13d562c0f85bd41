// A store that nobody measured: what more requests would get is an interval that holds nothing,
// until two runs tell.
#include "analysis/model/unknown_store.h"

#include <gtest/gtest.h>

#include "analysis/advice/next_step.h"
#include "analysis/advice/statements.h"
#include "analysis/model/limits/bounds.h"
#include "analysis/model/limits/limit_kind.h"
#include "analysis/model/prediction.h"
#include "tests/analysis/synthetic_run.h"

namespace headrace::analysis {
namespace {

// 20 ms of waiting for each batch on `threads` threads, and little else.
SimulatedPipeline Waiting(int threads, double wait_s = 0.02) {
  SimulatedPipeline pipeline;
  pipeline.cores = 4;
  pipeline.stages = {{"read", threads, 4, {{"get", 0.0002, wait_s, 0, 0, 0.1, -1}}},
                     {"pack", 1, 4, {{"pack", 0.0005, 0, 0, 0, 0.1, -1}}}};
  pipeline.consumer_s = 0.0005;
  return pipeline;
}

RunView Recorded(const SimulatedPipeline& pipeline, const std::string& cause) {
  RunView run = Record(pipeline, 8, 5);
  run.run.settings_text = "";
  if (cause.empty()) return run;
  MeasurementRow row;
  row.metric = "off_cpu_ns";
  row.operator_name = "get";
  row.stage = "read";
  row.cause = cause;
  row.value = 7e9;
  run.measurements.push_back(row);
  return run;
}

Interval GainOfThreads(const RunView& run, int threads) {
  const PipelineModel model(run);
  const Predictor predictor(model);
  Settings more = model.current();
  more.parallelism[0] = threads;
  const Prediction prediction = predictor.Predict({more, {}});
  const double now = model.demands().rate;
  const Interval gain =
      predictor.Gain({model.current(), {}}, {more, {}}, prediction.rate / now - 1);
  EXPECT_NEAR(gain.low, prediction.interval.low / now - 1, 0.25);
  return gain;
}

TEST(UnknownStore, OnlyWaitsForAStoreMakeAGainUnsure) {
  for (const char* cause : {"network", "storage", "poll", "lock", "pipe", "sleep"}) {
    SCOPED_TRACE(cause);
    const RunView run = Recorded(Waiting(1), cause);
    EXPECT_EQ(StagesOnUnknownStores(PipelineModel(run)), std::vector<size_t>{0});
    const Interval gain = GainOfThreads(run, 4);
    EXPECT_LT(gain.low, 0);
    EXPECT_GT(gain.low, -0.3);
    EXPECT_GT(gain.high, 2.5);
  }
  for (const char* cause : {"child", ""}) {
    SCOPED_TRACE(cause);
    const RunView run = Recorded(Waiting(1), cause);
    EXPECT_TRUE(StagesOnUnknownStores(PipelineModel(run)).empty());
    EXPECT_GT(GainOfThreads(run, 4).low, 1.5);
  }
}

TEST(UnknownStore, LittleWaitingIsNoMatter) {
  const RunView run = Recorded(Waiting(1, 0.00001), "network");
  EXPECT_TRUE(StagesOnUnknownStores(PipelineModel(run)).empty());
}

TEST(UnknownStore, ADeviceWithAnAccountIsKnown) {
  SimulatedPipeline pipeline = Waiting(2);
  pipeline.resources = {{"disk", 1}};
  pipeline.stages[0].operators[0] = {"get", 0.0002, 0, 0, 0.02, 0.1, 0};
  RunView run = Recorded(pipeline, "storage");
  run.resources[0].kind = "device";
  EXPECT_TRUE(StagesOnUnknownStores(PipelineModel(run)).empty());
}

// A plan may still be tried; what it says is what to measure, and why.
TEST(UnknownStore, ThePlanIsAnExperiment) {
  const RunView run = Recorded(Waiting(1), "network");
  const Statements statements = MakeStatements(run);
  ASSERT_TRUE(statements.allocation);
  EXPECT_FALSE(statements.allocation->shown());
  EXPECT_EQ(statements.allocation->unknown_store, "read");
  EXPECT_FALSE(statements.allocation->slower_probability);
  EXPECT_LT(statements.allocation->promise, statements.allocation->now);
  const NextStep next = NextStepOf(run, statements);
  EXPECT_EQ(next.kind, NextKind::kCompare);
  EXPECT_NE(next.text.find("What stage read waits for may have no more to give"), std::string::npos)
      << next.text;
}

void AddRun(RunView* run, double threads, double rate, double blocked_ratio, bool own) {
  run->stage_rates.push_back({"read", threads, blocked_ratio, 64 * rate, own});
}

// Four threads wait four times as long for the same rate: the store is full.
TEST(UnknownStore, TwoRunsShowThatItIsFull) {
  RunView run = Recorded(Waiting(4, 0.08), "network");
  const double rate = PipelineModel(run).demands().rate;
  AddRun(&run, 4, rate, 1, true);
  AddRun(&run, 1, 0.97 * rate, 1, false);
  const PipelineModel model(run);
  EXPECT_TRUE(StagesOnUnknownStores(model).empty());
  const Statements statements = MakeStatements(run);
  ASSERT_TRUE(statements.bottleneck);
  ASSERT_FALSE(statements.bottleneck->findings.empty());
  const Limit& limit = statements.bottleneck->findings[0].limit;
  EXPECT_EQ(limit.name, std::string(kStoreOf) + "read");
  EXPECT_EQ(Describe(limit), "the store of read");
  EXPECT_NEAR(limit.bound, rate, 0.03 * rate);
  EXPECT_LT(GainOfThreads(run, 16).high, 0.1);
}

// Eight threads got twice as much as one: the store has no more, and one thread does not fill it.
TEST(UnknownStore, ARunShowsHowMuchMoreItHas) {
  RunView few = Recorded(Waiting(1), "network");
  const double rate = PipelineModel(few).demands().rate;
  AddRun(&few, 1, rate, 1, true);
  AddRun(&few, 8, 2 * rate, 1, false);
  EXPECT_EQ(Describe(MakeStatements(few).bottleneck->findings[0].limit), "stage read");
  const Interval gain = GainOfThreads(few, 8);
  EXPECT_GT(gain.low, 0.3);
  EXPECT_LT(gain.low, 1);
  EXPECT_GT(gain.high, 1);
  EXPECT_LT(gain.high, 2);
  RunView many = Recorded(Waiting(8, 0.08), "network");
  const double most = PipelineModel(many).demands().rate;
  AddRun(&many, 8, most, 1, true);
  AddRun(&many, 1, 0.5 * most, 1, false);
  EXPECT_EQ(Describe(MakeStatements(many).bottleneck->findings[0].limit), "the store of read");
  EXPECT_LT(GainOfThreads(many, 16).high, 0.2);
}

// Threads that wait for room for a quarter of their time fill what comes after them, not the store.
TEST(UnknownStore, ThreadsThatWaitForRoomDoNotShowThatItIsFull) {
  for (const double blocked_ratio : {0.75, 0.95}) {
    RunView many = Recorded(Waiting(8, 0.08), "network");
    const double most = PipelineModel(many).demands().rate;
    AddRun(&many, 8, most, blocked_ratio, true);
    AddRun(&many, 1, 0.3 * most, 1, false);
    EXPECT_EQ(StagesOnUnknownStores(PipelineModel(many)).empty(), blocked_ratio > 0.9);
  }
}

// Another run got a little more of it. That is no promise to this one, whatever is set.
TEST(UnknownStore, AFullStoreMayGiveThisRunNoMoreThanItDid) {
  RunView run = Recorded(Waiting(4, 0.08), "network");
  const double rate = PipelineModel(run).demands().rate;
  AddRun(&run, 4, rate, 1, true);
  AddRun(&run, 1, 1.15 * rate, 1, false);
  const PipelineModel model(run);
  ASSERT_TRUE(StagesOnUnknownStores(model).empty()) << "the store is known to be full";
  const Predictor predictor(model);
  Variant deeper{model.current(), {}};
  for (int& queue : deeper.settings.queue_capacity) queue += 16;
  EXPECT_LE(predictor.Predict(deeper).interval.low, rate);
  EXPECT_LE(predictor.Gain({model.current(), {}}, deeper, 0.15).low, 0);
  // Asking half as much of it is another matter.
  Variant less{model.current(), {{Scaled::kStage, 0, 0.4}}};
  EXPECT_GT(predictor.Predict(less).interval.low, 1.2 * rate);
}

// What `many` threads got for a moment, `times` as much as the stage's own.
void AddProbe(RunView* run, int64_t many, double times, double blocked_ratio = 1) {
  const double rate = PipelineModel(*run).demands().rate;
  const int few = PipelineModel(*run).current().parallelism[0];
  AddRun(run, few, rate, 1, true);
  run->store_probes.push_back(
      {2'000'000'000, 500'000'000, "read", few, many, 1000, 1000 * times, 1, blocked_ratio});
}

TEST(UnknownStore, AProbeShowsThatItIsFull) {
  RunView run = Recorded(Waiting(2), "network");
  AddProbe(&run, 4, 1.02);
  EXPECT_TRUE(StagesOnUnknownStores(PipelineModel(run)).empty());
  const Statements statements = MakeStatements(run);
  ASSERT_TRUE(statements.bottleneck);
  const Limit& limit = statements.bottleneck->findings[0].limit;
  EXPECT_EQ(Describe(limit), "the store of read");
  EXPECT_NE(limit.kind->Because(*statements.model, limit, 1).find("4 threads for 500 ms show"),
            std::string::npos);
  EXPECT_LT(GainOfThreads(run, 16).high, 0.2);
}

// What a probe got is sure; what still more threads would get is not.
TEST(UnknownStore, AProbeShowsThatItGivesMoreToMore) {
  RunView run = Recorded(Waiting(1), "network");
  AddProbe(&run, 2, 1.9);
  const PipelineModel model(run);
  const std::vector<UnknownStore> stores = UnknownStoresOf(model);
  ASSERT_EQ(stores.size(), 1u);
  EXPECT_EQ(stores[0].threads, 2);
  const Predictor predictor(model);
  Settings two = model.current(), eight = model.current();
  two.parallelism[0] = 2;
  eight.parallelism[0] = 8;
  EXPECT_TRUE(predictor.StoreInDoubt({two, {}}).empty());
  EXPECT_EQ(predictor.StoreInDoubt({eight, {}}), "read");
  const double now = model.demands().rate;
  EXPECT_GT(predictor.Predict({two, {}}).interval.low, 1.5 * now);
  const Interval far = predictor.Predict({eight, {}}).interval;
  EXPECT_GT(far.low, 1.1 * now);
  EXPECT_LT(far.low, 2.2 * now);
}

TEST(UnknownStore, AProbeInBetweenTellsNeither) {
  for (const auto& [times, blocked] : {std::pair(1.4, 1.0), {1.0, 0.4}, {2.0, 0.4}}) {
    RunView run = Recorded(Waiting(1), "network");
    AddProbe(&run, 2, times, blocked);
    const std::vector<UnknownStore> stores = UnknownStoresOf(PipelineModel(run));
    ASSERT_EQ(stores.size(), 1u) << times;
    EXPECT_EQ(stores[0].threads, 1) << times;
  }
}

TEST(UnknownStore, RunsThatDoNotTellAreNoEvidence) {
  const RunView without = Recorded(Waiting(2), "network");
  const double rate = PipelineModel(without).demands().rate;
  const struct {
    const char* name;
    double threads, rate, blocked_ratio;
    bool known;
  } cases[] = {{"it scaled", 1, 0.5 * rate, 1, false},
               {"nearly as many threads", 1.5, rate, 1, false},
               {"held up by something else", 1, rate, 0.5, false},
               {"the same with half the threads", 1, 0.95 * rate, 1, true},
               {"the same with twice the threads", 4, 1.05 * rate, 1, true}};
  for (const auto& c : cases) {
    SCOPED_TRACE(c.name);
    RunView run = without;
    AddRun(&run, 2, rate, 1, true);
    AddRun(&run, c.threads, c.rate, c.blocked_ratio, false);
    EXPECT_EQ(StagesOnUnknownStores(PipelineModel(run)).empty(), c.known);
  }
  RunView contradicted = without;  // twice the threads got nothing, four times as many got more
  AddRun(&contradicted, 2, rate, 1, true);
  AddRun(&contradicted, 1, rate, 1, false);
  AddRun(&contradicted, 8, 2 * rate, 1, false);
  EXPECT_FALSE(StagesOnUnknownStores(PipelineModel(contradicted)).empty());
  RunView older = without;  // the latest run with so many threads counts
  AddRun(&older, 2, rate, 1, true);
  AddRun(&older, 1, 0.5 * rate, 1, false);
  AddRun(&older, 1, rate, 1, false);
  EXPECT_FALSE(StagesOnUnknownStores(PipelineModel(older)).empty());
  RunView run = without;  // two others that agree say nothing of this one
  AddRun(&run, 4, rate, 1, false);
  AddRun(&run, 8, rate, 1, false);
  EXPECT_FALSE(StagesOnUnknownStores(PipelineModel(run)).empty());
}

}  // namespace
}  // namespace headrace::analysis
