// Hypothetical pipelines: what each cheaper part lessens, what words are taken, and that
// predictions of them equal those of pipelines that are so.
#include "analysis/model/what_if.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "analysis/model/prediction.h"
#include "analysis/model/sensitivity.h"
#include "analysis/program/allocation.h"
#include "analysis/thresholds.h"
#include "base/error.h"
#include "tests/analysis/synthetic_run.h"

namespace headrace::analysis {
namespace {

constexpr double kLockS = 0.002;

// Three stages: one blocks, one computes, two operators of the third are of the same name as a
// stage and hold a lock.
SimulatedPipeline Mixed() {
  SimulatedPipeline pipeline;
  pipeline.cores = 4;
  pipeline.consumer_s = 0.001;
  pipeline.resources = {{"table", 1}};
  pipeline.stages.push_back({"fetch", 1, 4, {{"fetch", 0.0001, 0.008, 0, 0, 0.1, -1}}});
  pipeline.stages.push_back(
      {"decode", 2, 4, {{"unpack", 0.002, 0, 0, 0, 0.1, -1}, {"decode", 0.003, 0, 0, 0, 0.1, -1}}});
  pipeline.stages.push_back({"join", 1, 4, {{"look", 0.0001, 0.001, 0, kLockS, 0.1, 0}}});
  return pipeline;
}

class WhatIf : public testing::Test {
 protected:
  WhatIf() : run_(Record(Mixed(), 20, 3)), model_(run_) {}
  Variant Parsed(const std::vector<std::string>& words) const { return ParseWhatIf(model_, words); }

  RunView run_;
  PipelineModel model_;
};

TEST_F(WhatIf, ACheaperOperatorLessensAllThatItIsPartOf) {
  const Demands& before = model_.demands();
  const Demands after = Apply(model_, before, {{Scaled::kOperator, 2, 0.5}});
  const double half_s = before.operators[2].cpu_s / 2;
  EXPECT_NEAR(half_s, 0.0015, 0.0002);
  EXPECT_NEAR(before.stage_s[1] - after.stage_s[1], half_s, 1e-5);
  EXPECT_NEAR(before.stage_cpu_s[1] - after.stage_cpu_s[1], half_s, 1e-12);
  EXPECT_NEAR(before.cpu_s - after.cpu_s, half_s, 1e-12);
  EXPECT_EQ(after.stage_s[0], before.stage_s[0]);
}

TEST_F(WhatIf, AFasterLockMakesItsUsersCheaper) {
  const Demands& before = model_.demands();
  ASSERT_EQ(model_.resources().size(), 1u);
  const Demands after = Apply(model_, before, {{Scaled::kResource, 0, 0.5}});
  EXPECT_NEAR(after.resources[0].hold_s, kLockS / 2, 0.1 * kLockS);
  EXPECT_NEAR(before.stage_s[2] - after.stage_s[2], kLockS / 2, 0.1 * kLockS);
  EXPECT_NEAR(before.cpu_s, after.cpu_s, 1e-5);  // it slept
}

TEST_F(WhatIf, WordsOfEachKind) {
  const Variant what = Parsed({"fetch.parallelism=3", "decode.queue=16", "cores=2.5",
                               "consumer.cost=-50%", "stage:decode.cost=80%", "unpack.cost=2"});
  EXPECT_THAT(what.settings.parallelism, testing::ElementsAre(3, 2, 1));
  EXPECT_THAT(what.settings.queue_capacity, testing::ElementsAre(4, 16, 4));
  EXPECT_EQ(what.settings.cores, 2.5);
  ASSERT_EQ(what.scales.size(), 3u);
  EXPECT_EQ(what.scales[0].part, Scaled::kConsumer);
  EXPECT_DOUBLE_EQ(what.scales[0].factor, 0.5);
  EXPECT_EQ(what.scales[1].part, Scaled::kStage);
  EXPECT_DOUBLE_EQ(what.scales[1].factor, 0.8);
  EXPECT_EQ(what.scales[2].part, Scaled::kOperator);
  EXPECT_EQ(what.scales[2].index, 1u);
  // A stage of one operator of its name is no riddle.
  EXPECT_EQ(Parsed({"fetch.cost=+10%"}).scales[0].part, Scaled::kStage);
  EXPECT_DOUBLE_EQ(Parsed({"fetch.cost=+10%"}).scales[0].factor, 1.1);
}

// A generated pipeline's stage `fetch` has the operators `fetch` and `fetch.io`.
TEST(WhatIfNames, AStageOfAnOperatorAndItsPartsIsThatOperator) {
  SimulatedPipeline pipeline = Mixed();
  pipeline.stages[0].operators.push_back({"fetch.io", 0.0001, 0.004, 0, 0, 0.1, -1});
  const RunView run = Record(pipeline, 20, 3);
  const PipelineModel model(run);
  const Variant what = ParseWhatIf(model, {"fetch.cost=0.5"});
  ASSERT_EQ(what.scales.size(), 1u);
  EXPECT_EQ(what.scales[0].part, Scaled::kStage);
  EXPECT_EQ(what.scales[0].index, 0u);
  EXPECT_EQ(ParseWhatIf(model, {"operator:fetch.cost=0.5"}).scales[0].part, Scaled::kOperator);
  EXPECT_EQ(ParseWhatIf(model, {"fetch.io.cost=0.5"}).scales[0].part, Scaled::kOperator);
}

TEST(WhatIfNames, AnOperatorThatTookNoTimeMakesNoNameAmbiguous) {
  SimulatedPipeline pipeline = Mixed();
  pipeline.stages[1].operators[0] = {"unpack", 0, 0, 0, 0, 0, -1};
  const RunView run = Record(pipeline, 20, 3);
  const PipelineModel model(run);
  const Variant what = ParseWhatIf(model, {"decode.cost=0.5"});
  ASSERT_EQ(what.scales.size(), 1u);
  EXPECT_EQ(what.scales[0].part, Scaled::kStage);
  EXPECT_EQ(what.scales[0].index, 1u);
}

TEST_F(WhatIf, WrongWordsSayWhatThereIs) {
  const struct {
    const char *word, *what;
  } kCases[] = {
      {"", "is not a setting"},
      {"decode", "is not a setting"},
      {"decode.threads=3", "is not a setting"},
      {"decod.parallelism=3", "did you mean 'decode'"},
      {"zzzzzzzz.parallelism=3", "there are: fetch, decode, join"},
      {"decode.parallelism=0", "whole number from 1"},
      {"decode.parallelism=2.5", "whole number"},
      {"decode.parallelism=1e9", "whole number"},
      {"decode.parallelism=", "whole number"},
      {"decode.queue=-1", "whole number"},
      {"cores=0", "cores cannot be '0'"},
      {"cores=nan", "cores cannot be 'nan'"},
      {"cores=inf", "cores cannot be 'inf'"},
      {"decode.cost=0.5",
       "'decode' is a stage and an operator; say stage:decode.cost or operator:decode.cost"},
      {"unpack.cost=-120%", "how many times its present cost"},
      {"unpack.cost=-1", "how many times its present cost"},
      {"unpack.cost=%", "how many times its present cost"},
      {"nowhere.cost=1", "nothing that costs is named 'nowhere'"},
      {"resource:unpack.cost=1", "nothing that costs is named 'resource:unpack'"},
      {"fetch.cost=+-5%", "how many times its present cost"},
      {"pipeline.reorder_window=4", "delivers in any order"},
  };
  for (const auto& [word, what] : kCases) {
    try {
      Parsed({word});
      ADD_FAILURE() << word << " was taken";
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ExitCode::kUsage) << word;
      EXPECT_THAT(error.what(), testing::HasSubstr(what)) << word;
    }
  }
}

// The same change made in the pipeline itself: the prediction must come true there.
TEST_F(WhatIf, PredictionsComeTrue) {
  const Predictor predictor(model_);
  const struct {
    const char* word;
    void (*make)(SimulatedPipeline*);
  } kCases[] = {
      {"fetch.parallelism=4", [](SimulatedPipeline* p) { p->stages[0].parallelism = 4; }},
      {"fetch.cost=0.25",
       [](SimulatedPipeline* p) {
         p->stages[0].operators[0].blocked_s /= 4;
         p->stages[0].operators[0].cpu_s /= 4;
       }},
      {"fetch.cost=2",
       [](SimulatedPipeline* p) {
         p->stages[0].operators[0].blocked_s *= 2;
         p->stages[0].operators[0].cpu_s *= 2;
       }},
      {"consumer.cost=20", [](SimulatedPipeline* p) { p->consumer_s *= 20; }},
      {"table.cost=6", [](SimulatedPipeline* p) { p->stages[2].operators[0].held_blocked_s *= 6; }},
      {"cores=1", [](SimulatedPipeline* p) { p->cores = 1; }},
  };
  for (const auto& [word, make] : kCases) {
    SimulatedPipeline changed = Mixed();
    make(&changed);
    const double truth = SimulatedRate(changed, 5000, 77).value();
    const Variant what = Parsed({word});
    const Prediction said = predictor.Predict(what);
    EXPECT_NEAR(said.rate, truth, 0.05 * truth) << word;
    EXPECT_LE(said.interval.low, truth * 1.01) << word;
    EXPECT_GE(said.interval.high, truth * 0.99) << word;
  }
}

TEST_F(WhatIf, TheLimitingStageIsWorthMostAndOthersNothing) {
  const Predictor predictor(model_);
  const std::vector<Worth> worths =
      Sensitivity(model_, predictor, {model_.current(), {}}, Step::kUnit);
  ASSERT_FALSE(worths.empty());
  EXPECT_EQ(worths[0].limit.name, "fetch");
  EXPECT_EQ(worths[0].what, "2 threads instead of 1");
  EXPECT_GT(worths[0].gain, 0.5);
  EXPECT_LE(worths[0].interval.low, worths[0].gain);
  EXPECT_GE(worths[0].interval.high, worths[0].gain);
  for (size_t i = 1; i < worths.size(); ++i) EXPECT_LT(worths[i].gain, kNoGain) << i;
}

TEST_F(WhatIf, AGainOfNothingIsNarrow) {
  const Predictor predictor(model_);
  const Variant now{model_.current(), {}};
  const Interval none = predictor.Gain(now, now, 0);
  EXPECT_EQ(none.low, 0);
  EXPECT_EQ(none.high, 0);
  // A change where nothing is to be gained is known better than one that moves the rate.
  const Variant idle = ParseWhatIf(model_, {"join.queue=8"});
  const Variant moves = ParseWhatIf(model_, {"fetch.parallelism=2"});
  const Interval little = predictor.Gain(now, idle, 0), much = predictor.Gain(now, moves, 1);
  EXPECT_LT(little.high - little.low, 0.06);
  EXPECT_GT(little.high - little.low, 0.01);
  EXPECT_GT((much.high - much.low) / 2, 2 * (little.high - little.low));
}

TEST_F(WhatIf, AChangeOfNothingGainsNothing) {
  const Predictor predictor(model_);
  const double now = model_.demands().rate;
  // The last stage has room: neither a thread nor a place more there is of any use.
  for (const char* words : {"join.parallelism=1", "decode.parallelism=8", "fetch.cost=1"}) {
    const Variant what = Parsed({words});
    EXPECT_NEAR(predictor.Predict(what).rate / now, 1, 0.002) << words;
  }
  // The cores that the run had, by their number.
  const std::string same = "cores=" + std::to_string(static_cast<int>(model_.cores_budget()));
  EXPECT_EQ(Parsed({same}).settings, model_.current());
  // One question has one answer, with an interval or without.
  const Variant moves = Parsed({"fetch.parallelism=3"});
  EXPECT_DOUBLE_EQ(predictor.Predict(moves).rate, predictor.Rate(moves));
}

TEST_F(WhatIf, TheKneeIsWhereMoreThreadsStopPaying) {
  const Predictor predictor(model_);
  // Blocked 8 ms a batch; the lock's stage bounds the rate at 1 / 3.1 ms: three threads.
  const Curve curve = RateOverThreads(predictor, model_.current(), 0, 6);
  ASSERT_EQ(curve.points.size(), 6u);
  EXPECT_EQ(curve.knee, 3);
  const Curve cores = RateOverCores(predictor, {model_.current(), {}}, 3);
  EXPECT_EQ(cores.knee, 1);  // 5.2 ms of work in 8 ms
}

TEST(CorrectedRate, ABetterChangeIsNeverPredictedLower) {
  for (const double step : {-1.0, -0.3, -0.05, 0.0, 0.05, 0.3, 1.0}) {
    const double before = 100, seen = before * std::exp(step);
    EXPECT_NEAR(CorrectedRate(before, before, seen), seen, 1e-9 * seen);
    double last = 0;
    for (double moved = -3; moved < 3; moved += 0.01) {
      const double rate = CorrectedRate(before * std::exp(moved), before, seen);
      EXPECT_GT(rate, last) << "seen " << step << ", moved " << moved;
      last = rate;
    }
    const double far = before * std::exp(3);
    EXPECT_DOUBLE_EQ(CorrectedRate(far, before, seen), far) << "far from it nothing is corrected";
  }
}

// The settings of a plan, asked for in words, are predicted as the plan is; memory bandwidth is a
// row of both.
TEST(Predict, APlanAndTheWhatIfOfItsSettingsAgree) {
  for (const double ceiling : {0.0, 2e9, 2e11}) {
    SimulatedPipeline pipeline = Mixed();
    RunView run = Record(pipeline, 20, 5);
    // What simulation makes of it is not quite what was seen.
    for (WindowRow& window : run.windows) {
      window.steps.steps_count += window.steps.steps_count / 20;
    }
    if (ceiling > 0) {
      MeasurementRow moved;
      moved.metric = "memory_bytes";
      moved.value = 1e9 * static_cast<double>(run.run.duration_ns) * 1e-9;
      moved.source = "counter";
      moved.cause = "memory controllers";
      run.measurements.push_back(moved);
      run.memory_ceiling_bytes_per_s = ceiling;
    }
    const PipelineModel model(run);
    const Allocation plan = Allocate(model, {});
    ASSERT_FALSE(plan.changes.empty());
    std::vector<std::string> words;
    for (const Change& change : plan.changes) {
      words.push_back(change.knob + "=" + std::to_string(change.to));
    }
    const Prediction said = Predictor(model).Predict(ParseWhatIf(model, words));
    EXPECT_DOUBLE_EQ(said.rate, plan.predicted) << ceiling;
    EXPECT_EQ(said.limits[said.binding].name, plan.limited_by.name) << ceiling;
    const bool row = std::any_of(said.limits.begin(), said.limits.end(), [](const Limit& limit) {
      return limit.Is(kMemoryBandwidthLimit);
    });
    EXPECT_EQ(row, ceiling > 0);
    EXPECT_EQ(plan.limited_by.name == "memory bandwidth", ceiling == 2e9);
  }
}

TEST(RateOver, ADipIsNoGainOnTheWayBack) {
  const std::vector<double> rates = {800, 1400, 1647, 1598, 1664, 1640};
  const Curve curve =
      RateOver(6, 0.02, [&](int number) { return rates[static_cast<size_t>(number) - 1]; });
  EXPECT_EQ(curve.knee, 3);
  EXPECT_EQ(curve.points[3].second, 1647);
  EXPECT_EQ(curve.points[5], (std::pair{6, 1664.0}));
}

TEST_F(WhatIf, ASequentialStageIsMadeCheaperInstead) {
  run_.stages[0].max_parallelism_count = 1;
  const PipelineModel model(run_);
  const std::vector<Worth> worths =
      Sensitivity(model, Predictor(model), {model.current(), {}}, Step::kQuarter);
  EXPECT_EQ(worths[0].limit.name, "fetch");
  EXPECT_EQ(worths[0].what, "25 % faster");
  EXPECT_NEAR(worths[0].gain, 0.25, 0.05);
  EXPECT_THROW(ParseWhatIf(model, {"fetch.parallelism=2"}), Error);
}

// What earlier plans on this machine were wrong by widens or narrows what is said of the next one.
TEST_F(WhatIf, IntervalsLearnFromPlansThatRan) {
  const auto width_with = [&](int runs, double error, const char* kind) {
    RunView run = run_;
    for (int i = 0; i < runs; ++i) {
      // Off by up to the error, either way.
      const double part = error * (i + 1) / runs * (i % 2 == 0 ? 1 : -1);
      run.earlier_predictions.push_back({100, 95, 105, 100 * std::exp(part), "x", kind});
    }
    const PipelineModel model(run);
    const Variant what = ParseWhatIf(model, {"fetch.parallelism=2"});
    const Prediction said = Predictor(model).Predict(what);
    return std::log(said.rate / said.interval.low);  // no bound is in the way down
  };
  const double prior = width_with(0, 0, "stage");
  EXPECT_NEAR(width_with(40, 0.3, "cores"), prior, 1e-12) << "of another kind";
  EXPECT_GT(width_with(5, 0.3, "stage"), 1.1 * prior);
  EXPECT_LT(width_with(5, 0.3, "stage"), width_with(19, 0.3, "stage"));
  EXPECT_LT(width_with(40, 0.01, "stage"), 0.8 * prior);
  // With forty seen the interval reaches what nine tenths of them did.
  const double half = width_with(40, 0.3, "stage");
  EXPECT_GT(half, 0.9 * 0.27);
  EXPECT_LT(half, 0.31);
  // Runs that were too short to be observed say nothing.
  RunView run = run_;
  run.earlier_predictions.assign(50, {100, 95, 105, std::nullopt, "x", "stage"});
  const PipelineModel model(run);
  const Variant what = ParseWhatIf(model, {"fetch.parallelism=2"});
  const Prediction said = Predictor(model).Predict(what);
  EXPECT_NEAR(std::log(said.rate / said.interval.low), prior, 1e-12);
}

}  // namespace
}  // namespace headrace::analysis
