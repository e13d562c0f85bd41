#include "analysis/model/starved.h"

#include <gtest/gtest.h>

#include "analysis/model/limits/limit_kind.h"
#include "analysis/model/prediction.h"
#include "tests/analysis/synthetic_run.h"

namespace headrace::analysis {
namespace {

TEST(Starved, OnlyWorkOfThreadsThatMostlyWaitMayBecomeCheaper) {
  EXPECT_EQ(LeastCostOnceBusy(0.5, 100), 1);
  EXPECT_EQ(LeastCostOnceBusy(0.9, 100), 1);
  EXPECT_EQ(LeastCostOnceBusy(0.05, 1), 1) << "at the same rate they wait as much";
  EXPECT_EQ(LeastCostOnceBusy(0.05, 0.5), 1);
  EXPECT_EQ(LeastCostOnceBusy(0, 100), 1) << "nothing was seen";
  EXPECT_DOUBLE_EQ(LeastCostOnceBusy(0.25, 100), 0.5);
  EXPECT_DOUBLE_EQ(LeastCostOnceBusy(0.05, 4), 0.5) << "a little more work is little warmer";
  EXPECT_GE(LeastCostOnceBusy(1e-6, 1e6), 1.0 / 10) << "there is an end to it";
  for (double duty = 0.01; duty < 1; duty += 0.01) {
    EXPECT_LE(LeastCostOnceBusy(duty, 9), LeastCostOnceBusy(duty + 0.01, 9));
    EXPECT_GE(LeastCostOnceBusy(duty, 9), LeastCostOnceBusy(duty, 10));
  }
}

// How much more than predicted the ends of both intervals hold, once a store that makes all wait
// answers in no time, where packing a batch takes `pack_s` of CPU time.
Interval Beyond(double pack_s) {
  SimulatedPipeline pipeline;
  pipeline.cores = 4;
  pipeline.stages = {{"read", 1, 4, {{"get", 0.0002, 0.03, 0, 0, 0.1, -1}}},
                     {"pack", 1, 4, {{"pack", pack_s, 0, 0, 0, 0.1, -1}}}};
  pipeline.consumer_s = 0.0001;
  const RunView run = Record(pipeline, 8, 5);
  const PipelineModel model(run);
  const Predictor predictor(model);
  const Variant fast{model.current(), {{Scaled::kOperator, 0, 0.001}}};
  const Prediction prediction = predictor.Predict(fast);
  const double gain = prediction.rate / model.demands().rate - 1;
  const Interval of_gain = predictor.Gain({model.current(), {}}, fast, gain);
  EXPECT_LE(of_gain.low, gain);
  return {prediction.interval.high / prediction.rate, (1 + of_gain.high) / (1 + gain)};
}

TEST(Starved, IntervalsHoldWhatBusyThreadsMayDo) {
  const Interval starved = Beyond(0.002);  // computes 6 % of the time
  EXPECT_GT(starved.low, 3);
  EXPECT_GT(starved.high, 3);
  const Interval busy = Beyond(0.02);  // 60 %
  EXPECT_LT(busy.low, 1.3);
  EXPECT_LT(busy.high, 1.3);
}

// Threads of tf.data's pool that look for work compute less once they have enough.
TEST(Starved, APoolMayNeedLessOnceItIsBusy) {
  const auto high = [](const char* stage) {
    SimulatedPipeline pipeline;
    pipeline.cores = 2;
    pipeline.stages = {{stage, 1, 4, {{"map", 0.008, 0, 0, 0, 0.1, -1}}}};
    pipeline.consumer_cpu_s = 0.001;
    RunView run = Record(pipeline, 8, 5);
    run.run.pipeline_path.clear();
    const PipelineModel model(run);
    Settings more = model.current();
    more.parallelism[0] = 4;
    const Prediction prediction = Predictor(model).Predict({more, {}});
    EXPECT_TRUE(prediction.limits[prediction.binding].Is(kCoresLimit));
    return prediction.interval.high / prediction.rate;
  };
  EXPECT_GT(high("tf.data map"), 1.05 * high("workers"));
}

}  // namespace
}  // namespace headrace::analysis
