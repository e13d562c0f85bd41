// The diffusion formula against the simulator, and the bootstrap's building blocks.
#include "analysis/model/queue_loss.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "analysis/model/simulate.h"
#include "analysis/statistics/statistics.h"

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

// What is due is let in past a full queue only where nothing can be taken: else the stages before a
// slow one would run on without bound, and hold locks that it waits for.
TEST(Simulate, AnOrderedQueueIsBounded) {
  SimulatedPipeline pipeline;
  pipeline.cores = 8;
  pipeline.stages.push_back({"fast", 4, 2, {{"fast", 0, 0.001, 0, 0, 1.0, -1}}});
  pipeline.stages.push_back({"slow", 1, 2, {{"slow", 0, 0.01, 0, 0, 0.1, -1}}});
  for (SimulatedStage& stage : pipeline.stages) stage.ordered = true;
  int64_t most = 0;
  Simulate(pipeline, 20, 0, 7, 0.01, [&](const SimulatedCounters& now) {
    most = std::max(most, now.queues[0].puts - now.queues[0].gets);
  });
  EXPECT_LE(most, 3);  // the capacity and one that was due
  EXPECT_GE(most, 2);
}

TEST(Simulate, OrderCostsNothingWhereALockLimits) {
  SimulatedPipeline pipeline;
  pipeline.cores = 64;
  pipeline.resources = {{"table", 1}};
  for (const int threads : {8, 2, 4, 1}) {
    const std::string name(1, static_cast<char>('a' + pipeline.stages.size()));
    pipeline.stages.push_back({name, threads, 4, {{name, 0, 0.001 * threads, 0, 0.003, 0.2, 0}}});
  }
  const double any = SimulatedRate(pipeline, 4000, 3).value();
  for (SimulatedStage& stage : pipeline.stages) stage.ordered = true;
  EXPECT_NEAR(any, 1 / 0.012, 2);
  EXPECT_NEAR(SimulatedRate(pipeline, 4000, 3).value(), any, 0.05 * any);
}

}  // namespace
}  // namespace headrace::analysis
