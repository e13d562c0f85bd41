// What the server keeps of the runs that were looked at, and that it lets go of the rest.
#include "dashboards/serve/run_cache.h"

#include <gtest/gtest.h>

#include "tests/dashboards/stored_run.h"

namespace headrace::dashboards {
namespace {

constexpr int64_t kRuns = 4;

analysis::SimulatedPipeline SmallPipeline() {
  analysis::SimulatedPipeline pipeline;
  pipeline.cores = 2;
  pipeline.stages = {{"fetch", 1, 4, {{"fetch", 0.0002, 0.008, 0, 0, 0.2, -1}}}};
  pipeline.consumer_s = 0.004;
  return pipeline;
}

class CachedRuns : public testing::Test {
 protected:
  void SetUp() override {
    collectors::RunStore store(files_.path());
    for (int64_t i = 0; i < kRuns; ++i)
      ids_.push_back(StoreRun(store, analysis::Record(SmallPipeline(), 8, 3), "run"));
  }

  RunCache Cache(CacheRoom room) { return RunCache(files_.path(), "headrace", "", room); }

  // The run is kept by the cache alone: whether it is still there when nobody uses it.
  std::weak_ptr<const LoadedRun> Look(RunCache& cache, size_t index) {
    collectors::ReadStore store(files_.path());
    const int64_t id = ids_[index];
    return cache.Load(id, RunCache::VersionOf(store, id).value());
  }

  size_t BytesOfOne() {
    RunCache cache = Cache({});
    Look(cache, 0);
    return cache.HeldRunBytes();
  }

  TemporaryStore files_;
  std::vector<int64_t> ids_;
};

TEST_F(CachedRuns, ARunIsReadOnceAsLongAsThereIsRoom) {
  RunCache cache = Cache({});
  const std::weak_ptr<const LoadedRun> first = Look(cache, 0);
  Look(cache, 1);
  ASSERT_FALSE(first.expired());
  EXPECT_EQ(Look(cache, 0).lock(), first.lock());
  EXPECT_GE(cache.HeldRunBytes(), 2 * sizeof(analysis::OperatorCounters));
}

// With room for two and a half, the one that was looked at longest ago is let go.
TEST_F(CachedRuns, WhatWasUsedLongestAgoGoesWhenTheBytesAreUsedUp) {
  const size_t one = BytesOfOne();
  ASSERT_GT(one, 0u);
  const size_t most = 2 * one + one / 2;
  RunCache cache = Cache({.run_bytes = most});
  std::vector<std::weak_ptr<const LoadedRun>> runs{Look(cache, 0), Look(cache, 1)};
  Look(cache, 0);
  runs.push_back(Look(cache, 2));
  EXPECT_FALSE(runs[0].expired());
  EXPECT_TRUE(runs[1].expired());
  EXPECT_FALSE(runs[2].expired());
  for (size_t i = 0; i < 3 * kRuns; ++i) {
    Look(cache, i % kRuns);
    EXPECT_LE(cache.HeldRunBytes(), most);
    EXPECT_GE(cache.HeldRunBytes(), one);
  }
}

TEST_F(CachedRuns, ARunThatIsLargerThanTheRoomIsKeptAlone) {
  const size_t one = BytesOfOne();
  RunCache cache = Cache({.run_bytes = one / 2});
  const std::weak_ptr<const LoadedRun> first = Look(cache, 0);
  EXPECT_FALSE(first.expired());
  EXPECT_EQ(Look(cache, 0).lock(), first.lock());
  const std::weak_ptr<const LoadedRun> second = Look(cache, 1);
  EXPECT_TRUE(first.expired());
  EXPECT_FALSE(second.expired());
  EXPECT_EQ(cache.HeldRunBytes(), one);
}

TEST_F(CachedRuns, NoMoreRunsThanAskedAreKept) {
  RunCache cache = Cache({.runs = 2});
  std::vector<std::weak_ptr<const LoadedRun>> runs;
  for (size_t i = 0; i < 3; ++i) runs.push_back(Look(cache, i));
  EXPECT_TRUE(runs[0].expired());
  EXPECT_FALSE(runs[1].expired());
  EXPECT_FALSE(runs[2].expired());
}

// Whoever uses a run that the cache lets go of keeps it until then.
TEST_F(CachedRuns, ARunInUseOutlivesItsPlace) {
  RunCache cache = Cache({.runs = 1});
  const std::shared_ptr<const LoadedRun> used = Look(cache, 0).lock();
  Look(cache, 1);
  EXPECT_EQ(used->run.run.run_id, ids_[0]);
}

TEST_F(CachedRuns, AnswersAreKeptUpToTheirBytes) {
  constexpr size_t kMost = 64 << 10;
  RunCache cache = Cache({.answer_bytes = kMost});
  const std::string body(4 << 10, 'x');
  for (int i = 0; i < 100; ++i) {
    cache.Keep("answer " + std::to_string(i), body);
    EXPECT_NE(cache.Find("answer 0"), nullptr) << "used each time, after " << i;
    EXPECT_LE(cache.HeldAnswerBytes(), kMost);
  }
  EXPECT_NE(cache.Find("answer 99"), nullptr);
  EXPECT_EQ(cache.Find("answer 1"), nullptr);
  EXPECT_GE(cache.HeldAnswerBytes(), kMost / 2);
}

TEST_F(CachedRuns, AnAnswerOfMoreThanAQuarterIsGivenAndNotKept) {
  RunCache cache = Cache({.answer_bytes = 64 << 10});
  cache.Keep("small", "x");
  const std::string large(16 << 10, 'x');
  EXPECT_EQ(cache.Keep("large", large)->body, large);
  EXPECT_EQ(cache.Find("large"), nullptr);
  EXPECT_NE(cache.Find("small"), nullptr);
}

}  // namespace
}  // namespace headrace::dashboards
