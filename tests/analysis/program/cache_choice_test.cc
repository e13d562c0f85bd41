// Which stage's output to keep: on pipelines where the answer can be worked out by hand.
#include "analysis/program/cache_choice.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "tests/analysis/synthetic_run.h"

namespace headrace::analysis {
namespace {

// Elements of 64 KiB everywhere (synthetic_run.h); 12 ms, 4 ms and 2 ms a batch, the consumer
// takes 1.
SimulatedPipeline Chain() {
  SimulatedPipeline pipeline;
  pipeline.cores = 8;
  pipeline.consumer_s = 0.001;
  pipeline.stages.push_back({"fetch", 1, 4, {{"fetch", 0.0001, 0.012, 0, 0, 0.1, -1}}});
  pipeline.stages.push_back({"decode", 1, 4, {{"decode", 0.004, 0, 0, 0, 0.1, -1}}});
  pipeline.stages.push_back({"batch", 1, 4, {{"batch", 0.002, 0, 0, 0, 0.1, -1}}});
  return pipeline;
}

constexpr double kElementBytes = 65536;

class Cache : public testing::Test {
 protected:
  Cache() : run_(Record(Chain(), 20, 3)), model_(run_), predictor_(model_) {}
  CacheChoice Choose(double epochs, std::vector<CacheTier> tiers) const {
    return ChooseCache(model_, predictor_, {1000, epochs, std::move(tiers)});
  }

  RunView run_;
  PipelineModel model_;
  Predictor predictor_;
};

CacheTier Memory(double budget_bytes) {
  return {"memory", budget_bytes, kElementBytes / 0.0001, kElementBytes / 0.0001, false, true};
}
// Reads and writes one element in so many seconds.
CacheTier Disk(double each_s) {
  return {"disk", 1e12, kElementBytes / each_s, kElementBytes / each_s, true, false};
}

TEST_F(Cache, AllThatFitsIsReadBackAndTheNextStageLimits) {
  const CacheChoice choice = Choose(10, {Memory(1e9)});
  ASSERT_TRUE(choice.best);
  const CacheOption& best = choice.options[*choice.best];
  EXPECT_EQ(best.share, 1);
  EXPECT_DOUBLE_EQ(best.stored_bytes, 1000 * kElementBytes);
  // After the last stage nothing is left to do but to read: the consumer limits at 1000.
  EXPECT_EQ(best.stage, 2u);
  EXPECT_NEAR(best.warm_rate, 1000, 60);
  EXPECT_EQ(best.then.kind_name(), kConsumerLimit);
  EXPECT_NEAR(choice.rate, 1 / 0.0121, 2);
  // 1 filling epoch and 9 warm ones.
  EXPECT_NEAR(*best.total_s, 1000 / best.fill_rate + 9 * 1000 / best.warm_rate, 1e-9);
  EXPECT_LT(*best.break_even_epochs, 2);
  for (const CacheOption& option : choice.options) {
    if (option.stage == 0) {
      EXPECT_NEAR(option.warm_rate, 250, 10) << "then decode limits";
    }
    EXPECT_LE(option.warm_gain.low, option.warm_rate / choice.rate - 1);
    EXPECT_GE(option.warm_gain.high, option.warm_rate / choice.rate - 1);
  }
}

TEST_F(Cache, OneEpochIsNeverCached) { EXPECT_FALSE(Choose(1, {Memory(1e9), Disk(0.0001)}).best); }

TEST_F(Cache, ABudgetForHalfOfItSavesHalf) {
  const CacheChoice choice = Choose(30, {Memory(500 * kElementBytes)});
  ASSERT_TRUE(choice.best);
  const CacheOption& best = choice.options[*choice.best];
  EXPECT_NEAR(best.share, 0.5, 1e-9);
  EXPECT_NEAR(best.warm_rate, 1 / 0.0061, 6);
}

TEST_F(Cache, ADiskDeliversNoMoreThanItDoes) {
  const CacheChoice slow = Choose(30, {Disk(0.020)});
  EXPECT_FALSE(slow.best) << "20 ms to read what 12 ms make";
  const CacheChoice fast = Choose(30, {Disk(0.005)});
  ASSERT_TRUE(fast.best);
  EXPECT_NEAR(fast.options[*fast.best].warm_rate, 200, 8);
  EXPECT_EQ(fast.options[*fast.best].then.name, "cache disk");
}

TEST_F(Cache, RandomDrawsAreNotKept) {
  // As the reader books it: the kind of all transforms, the name of this one.
  run_.operators[1].kind = "transform";
  run_.operators[1].name = "random_crop";
  const PipelineModel model(run_);
  const CacheChoice choice = ChooseCache(model, Predictor(model), {1000, 10, {Memory(1e9)}});
  ASSERT_TRUE(choice.best);
  EXPECT_EQ(choice.options[*choice.best].stage, 0u) << "before the draw";
  EXPECT_THAT(choice.options[0].random, testing::ElementsAre("random_crop"));
}

TEST_F(Cache, WithoutSizesNothingIsSaid) {
  for (OperatorRow& op : run_.operators) op.bytes_out_bytes = 0;
  const PipelineModel model(run_);
  const CacheChoice choice = ChooseCache(model, Predictor(model), {1000, 10, {Memory(1e9)}});
  EXPECT_FALSE(choice.best);
  EXPECT_THAT(choice.unknown, testing::ElementsAre(0, 1, 2));
}

TEST_F(Cache, QuestionsThatCannotBeAnswered) {
  EXPECT_THROW(ChooseCache(model_, predictor_, {0, 10, {Memory(1e9)}}), Error);
  EXPECT_THROW(ChooseCache(model_, predictor_, {1000, 10, {}}), Error);
}

// A completion that puts several elements: their size is that of one.
TEST_F(Cache, ElementsAreMeasuredInTheQueue) {
  run_.queues[0].puts_count *= 4;
  const PipelineModel model(run_);
  EXPECT_NEAR(*model.stages()[0].element_bytes, kElementBytes / 4, 0.01 * kElementBytes);
}

// A cache that may gain nothing pays nothing back.
TEST_F(Cache, AGainThatMayBeNonePaysNever) {
  // To read what is kept takes as long as to make it.
  for (const double each_s : {0.011, 0.0115, 0.0119, 0.012}) {
    const CacheChoice choice = Choose(0, {Disk(each_s)});
    for (const CacheOption& option : choice.options) {
      if (option.warm_gain.low > 0) continue;
      EXPECT_FALSE(option.break_even_epochs.has_value()) << each_s;
    }
    if (choice.best) {
      EXPECT_GT(choice.options[*choice.best].warm_gain.low, 0);
    }
  }
}

}  // namespace
}  // namespace headrace::analysis
