// The diffusion formula against the simulator, and the bootstrap's building blocks.
#include "analysis/queue_loss.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "analysis/simulate.h"
#include "analysis/statistics.h"

namespace headrace::analysis {
namespace {

TEST(QueueLoss, AgreesWithTheSimulationOfTwoEqualStages) {
  for (double cv : {0.3, 0.5, 1.0}) {
    for (int slots : {1, 2, 4, 8, 16}) {
      SimulatedPipeline pipeline;
      pipeline.cores = 100;
      SimulatedStage stage{"a", 1, slots, {{"a", 0, 1.0, 0, 0, cv, -1}}};
      pipeline.stages = {stage};
      pipeline.consumer_s = 1.0;
      pipeline.consumer_cv = cv;
      const double loss = 1 - SimulatedRate(pipeline, 40000, 5).value_or(0);
      EXPECT_NEAR(QueueLoss(1, cv, cv, slots), loss, 0.04) << "cv " << cv << ", slots " << slots;
    }
  }
}

TEST(QueueLoss, CapacityGrowsWithVarianceAndVanishesWithSlack) {
  EXPECT_EQ(SufficientCapacity(0.5, 0.1, 0.1, 0.01, 2, 32), 2);
  EXPECT_GT(SufficientCapacity(1.0, 1.0, 1.0, 0.02, 2, 32),
            SufficientCapacity(1.0, 0.3, 0.3, 0.02, 2, 32));
}

TEST(Simulate, SharesCoresAndConservesElements) {
  SimulatedPipeline pipeline;
  pipeline.cores = 2;
  pipeline.stages = {{"spin", 4, 4, {{"spin", 0.002, 0, 0, 0, 0, -1}}}};
  EXPECT_NEAR(SimulatedRate(pipeline, 5000, 1).value_or(0), 1000, 5);  // 2 cores / 2 ms
  const SimulatedCounters end = Simulate(pipeline, 5, 0, 1);
  EXPECT_NEAR(end.operators[0][0].cpu_s, 10, 0.01);
  EXPECT_EQ(end.queues[0].puts, end.queues[0].gets);
  EXPECT_NEAR(static_cast<double>(end.steps), static_cast<double>(end.operators[0][0].completions),
              9);
}

TEST(Statistics, QuantilesBlocksAndMoments) {
  EXPECT_DOUBLE_EQ(Quantile({1, 2, 3, 4}, 0.5), 2.5);
  EXPECT_DOUBLE_EQ(Variance(std::vector<double>{1, 3}), 2);
  Random random(3);
  double sum = 0, squares = 0;
  constexpr int kDraws = 200000;
  for (int i = 0; i < kDraws; ++i) {
    const double x = random.LogNormal(2, 0.5);
    sum += x;
    squares += x * x;
  }
  const double mean = sum / kDraws;
  EXPECT_NEAR(mean, 2, 0.02);
  EXPECT_NEAR(std::sqrt(squares / kDraws - mean * mean) / mean, 0.5, 0.02);
  const std::vector<size_t> sample = BlockResample(10, 3, random);
  ASSERT_EQ(sample.size(), 10u);
  EXPECT_EQ(sample[1], (sample[0] + 1) % 10);
}

}  // namespace
}  // namespace headrace::analysis
