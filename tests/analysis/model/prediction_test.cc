// Predictions of pipelines whose costs are not of the shape that is taken first, and what is made
// of the time off the cores.
#include "analysis/model/prediction.h"

#include <gtest/gtest.h>

#include <cmath>

#include "tests/analysis/synthetic_run.h"

namespace headrace::analysis {
namespace {

TEST(Simulate, SlowFiringsKeepMeanAndSpread) {
  // Alone and without queues that matter, the rate tells the mean; two stages in step the spread.
  SimulatedPipeline alone;
  alone.stages.push_back({"a", 1, 4, {{"a", 0, 0.01, 0, 0, 2, -1, 0.1}}});
  EXPECT_NEAR(SimulatedRate(alone, 40000, 3).value(), 100, 4);
  // A spread that cannot be had with that share of slow ones is lognormal.
  SimulatedPipeline wide = alone, lognormal = alone;
  wide.stages[0].operators[0].cv = lognormal.stages[0].operators[0].cv = 3.5;
  lognormal.stages[0].operators[0].slow = 0;
  EXPECT_NE(SimulatedRate(alone, 500, 3), SimulatedRate(wide, 500, 3));
  EXPECT_EQ(SimulatedRate(wide, 500, 3), SimulatedRate(lognormal, 500, 3));
}

// Six threads whose order allows four elements ahead; one element in ten takes seven times as long.
SimulatedPipeline Ordered(int threads) {
  SimulatedPipeline pipeline;
  pipeline.cores = 16;
  SimulatedStage stage{"load", threads, 16, {{"load", 0.0006, 0.0294, 0, 0, 2, -1, 0.1}}};
  stage.ordered = true;
  stage.window = 4;
  pipeline.stages.push_back(stage);
  SimulatedStage next{"join", 1, 16, {{"join", 0.0094, 0, 0, 0, 0.7, -1}}};
  next.ordered = true;
  next.window = 4;
  pipeline.stages.push_back(next);
  pipeline.consumer_s = 0.003;
  return pipeline;
}

// What one pair of runs differs by from the next is in the promise, also where a bound is near.
TEST(Prediction, OfAProgramOfOthersIsLessSure) {
  SimulatedPipeline pipeline;
  pipeline.cores = 2;
  pipeline.stages = {{"load", 1, 4, {{"load", 0.008, 0, 0, 0, 0.1, -1}}}};
  pipeline.consumer_s = 0.001;
  const auto predicted = [&](const std::string& path) {
    RunView run = Record(pipeline, 20, 5);
    run.run.pipeline_path = path;
    const PipelineModel model(run);
    Settings more = model.current();
    more.parallelism[0] = 4;
    return Predictor(model).Predict({more, {}}).interval;
  };
  const Interval own = predicted("pipeline.toml"), foreign = predicted("");
  EXPECT_LT(foreign.low, 0.95 * own.low);
  EXPECT_GT(foreign.high, 1.05 * own.high);
}

TEST(Prediction, LearnsTheShapeOfCostsFromThePresentRate) {
  RunView run = Record(Ordered(6), 400, 5);
  run.run.element_order = "file";
  run.run.order_window_count = 4;
  const PipelineModel model(run);
  ASSERT_TRUE(model.ordered());
  ASSERT_GT(model.stages()[0].cv, 1.5);
  const double present =
      SimulatedRate(model.Simulated(model.current(), model.demands()), 4000, 1).value();
  EXPECT_GT(std::abs(std::log(present / model.demands().rate)), 0.03)
      << "a lognormal shape is told from this one by the present rate";
  Settings sixteen = model.current();
  sixteen.parallelism[0] = 16;
  const double truth = SimulatedRate(Ordered(16), 20000, 9).value();
  const Prediction prediction = Predictor(model).Predict({sixteen, {}});
  EXPECT_NEAR(prediction.rate / truth, 1, 0.06);
  EXPECT_GT(prediction.rate, 1.25 * model.demands().rate);
}

// A few hundred elements that vary much, in order: which of them are slow makes a tenth of the rate
// and more, in the run that was seen and in the next one. Long runs have as much of both.
TEST(Prediction, OfFewElementsInOrderHoldsWhatChanceDoes) {
  const auto pipeline = [](int threads, int queue) {
    SimulatedPipeline made;
    made.cores = 2;
    made.stages.push_back({"load", threads, queue, {{"load", 0, 0.035, 0, 0, 1, -1}}});
    made.stages[0].ordered = true;
    made.consumer_s = 0.002;
    return made;
  };
  constexpr int kRuns = 30;
  constexpr double kSeconds = 5;
  const uint64_t seed = 20261129;
  SCOPED_TRACE(testing::Message() << "seeds from " << seed);
  int held = 0;
  double width = 0;
  for (int i = 0; i < kRuns; ++i) {
    RunView run = Record(pipeline(4, 2), kSeconds, seed + static_cast<uint64_t>(i));
    run.run.element_order = "file";
    const PipelineModel model(run);
    ASSERT_TRUE(model.ordered());
    Settings more = model.current();
    more.parallelism[0] = more.queue_capacity[0] = 8;
    const Prediction prediction = Predictor(model).Predict({more, {}});
    const auto steps = static_cast<int64_t>(kSeconds * prediction.rate);
    const double truth =
        SimulatedRate(pipeline(8, 8), steps, seed + 1000 + static_cast<uint64_t>(i)).value();
    held += prediction.interval.low <= truth && truth <= prediction.interval.high;
    width += std::log(prediction.interval.high / prediction.interval.low) / kRuns;
  }
  EXPECT_GE(held, 24) << "of " << kRuns;
  RunView run = Record(pipeline(4, 2), 60 * kSeconds, seed);
  run.run.element_order = "file";
  const PipelineModel model(run);
  Settings more = model.current();
  more.parallelism[0] = more.queue_capacity[0] = 8;
  const Interval interval = Predictor(model).Predict({more, {}}).interval;
  EXPECT_LT(std::log(interval.high / interval.low), 0.7 * width) << "of a long run";
  run.run.element_order = "any";
  const PipelineModel unordered(run);
  const Interval any = Predictor(unordered).Predict({more, {}}).interval;
  EXPECT_LT(std::log(any.high / any.low), 0.5 * width) << "nothing is held up";
}

// Each firing costs the same in all simulations, so longer queues and what they gain are told from
// chance.
TEST(Prediction, ALongerQueueNeverLowersTheRate) {
  const uint64_t seed = 20261126;
  Random random(seed);
  for (int i = 0; i < 12; ++i) {
    SCOPED_TRACE(testing::Message() << "seed " << seed << ", pipeline " << i);
    SimulatedPipeline pipeline;
    pipeline.cores = 8;
    const size_t stages = 2 + static_cast<size_t>(random.Below(3));
    for (size_t s = 0; s < stages; ++s) {
      const std::string name = "s" + std::to_string(s);
      SimulatedOperator op{
          name, 0.001 + 0.004 * random.Uniform(), 0.004 * random.Uniform(), 0, 0, random.Uniform(),
          -1};
      pipeline.stages.push_back({name,
                                 1 + static_cast<int>(random.Below(3)),
                                 1 + static_cast<int>(random.Below(3)),
                                 {op}});
    }
    pipeline.consumer_s = 0.002 * random.Uniform();
    const RunView run = Record(pipeline, 20, seed + static_cast<uint64_t>(i));
    const PipelineModel model(run);
    const Predictor predictor(model);
    for (size_t s = 0; s < stages; ++s) {
      Settings longer = model.current();
      double before = 0;
      for (int times = 0; times < 4; ++times) {
        longer.queue_capacity[s] *= 2;
        const double rate = predictor.Rate({longer, {}});
        EXPECT_GE(rate, before * 0.999) << longer.queue_capacity[s] << " places behind " << s;
        before = rate;
      }
    }
  }
}

TEST(Prediction, ABoundSparesTheSimulationAndChangesNothing) {
  const RunView run = Record(Ordered(6), 60, 5);
  const PipelineModel model(run);
  const Predictor predictor(model), fresh(model);
  Settings more = model.current();
  more.parallelism[0] = 8;
  const double rate = predictor.Rate({more, {}});
  EXPECT_EQ(fresh.RateOver({more, {}}, 0), rate);
  EXPECT_EQ(fresh.RateOver({more, {}}, 0.9 * rate), rate);
  EXPECT_LT(Predictor(model).RateOver({more, {}}, 100 * rate), 100 * rate);
  EXPECT_EQ(Predictor(model).Rate({more, {}}), rate) << "what was looked at before is no matter";
}

// Eight threads that block for half their work, beside ones that compute, on two full cores: their
// accounts know time on the cores only, the scheduler's how long the threads were runnable.
TEST(Prediction, WaitingForFullCoresIsNoDemand) {
  SimulatedPipeline pipeline;
  pipeline.cores = 2;
  pipeline.stages.push_back({"load", 8, 1, {{"load", 0.0022, 0.0026, 0, 0, 0.1, -1}}});
  pipeline.stages.push_back({"work", 8, 1, {{"work", 0.016, 0, 0, 0, 0.1, -1}}});
  RunView run = Record(pipeline, 30, 2);
  for (OperatorRow& op : run.operators) op.blocked_ns = op.runnable_ns = std::nullopt;
  for (WindowRow& window : run.windows) {
    for (OperatorCounters& op : window.operators) op.blocked_ns = op.runnable_ns = std::nullopt;
  }
  const PipelineModel model(run);
  EXPECT_NEAR(model.demands().stage_s[0], 0.0048, 0.0012);
  EXPECT_NEAR(model.demands().stage_s[1], 0.016, 0.001);
}

// Half the width of the interval around a prediction, in the logarithm, after these residuals of
// plans that were limited by a stage.
double HalfWidth(const std::vector<double>& factors, bool other_pipeline = false) {
  SimulatedPipeline pipeline;
  pipeline.cores = 8;
  pipeline.stages = {{"fetch", 1, 8, {{"fetch", 0.0001, 0.01, 0, 0, 0.1, -1}}}};
  pipeline.consumer_s = 0.0005;
  RunView run = Record(pipeline, 20, 5);
  for (const double factor : factors) {
    run.earlier_predictions.push_back(
        {100, 90.0, 110.0, 100 / factor, "fetch", "stage", other_pipeline});
  }
  const PipelineModel model(run);
  Settings four = model.current();
  four.parallelism[0] = 4;
  const Prediction prediction = Predictor(model).Predict({four, {}});
  return std::log(prediction.rate / prediction.interval.low);
}

TEST(Prediction, LargeErrorsWidenWhatIsPromised) {
  const double without = HalfWidth({});
  const double small = HalfWidth({1.03, 0.98, 1.02});
  EXPECT_NEAR(small / without, 1, 0.15);
  // One that was eightfold off is noticed and does not decide all.
  const double one = HalfWidth({8});
  EXPECT_GT(one, 1.3 * without);
  EXPECT_LT(one, 4 * without);
  // Three such are what happens here.
  EXPECT_GT(HalfWidth({8, 7, 6.5}), std::log(6));
  // Among many that were right they are the rare case.
  std::vector<double> many(40, 1.02);
  many.push_back(8);
  many.push_back(7);
  EXPECT_LT(HalfWidth(many), 1.5 * without);
  // A plan for another pipeline tells nothing of the model.
  EXPECT_NEAR(HalfWidth({8, 7, 6.5}, true), without, 1e-9);
}

}  // namespace
}  // namespace headrace::analysis
