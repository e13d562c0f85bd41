#include "collectors/flight_recorder.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <random>

#include "tests/collectors/times.h"
#include "tests/seed.h"

namespace headrace::collectors {
namespace {

constexpr int64_t kTick = 100 * kMs;

IntervalSample Tick(int64_t number, int operators = 1) {
  IntervalSample t;
  t.start_ns = number * kTick;
  t.duration_ns = kTick;
  for (int i = 0; i < operators; i++) {
    OperatorSample o;
    o.id = i;
    o.name = "op";
    o.busy_ns = number + 1;
    t.operators.push_back(o);
  }
  t.steps.steps = 1;
  t.steps.records = {{t.start_ns + kMs, kMs / 2, kMs / 2, 64}};
  return t;
}

struct Stored {
  std::vector<IntervalSample> coarse, detail;
  std::vector<DetailRange> ranges;

  void From(FlightRecorder* flight) {
    for (auto& s : flight->TakeCoarse()) coarse.push_back(std::move(s));
    for (auto& s : flight->TakeDetail()) detail.push_back(std::move(s));
    if (const auto range = flight->TakeRange()) {
      if (ranges.empty() || ranges.back().start_ns != range->start_ns) ranges.push_back(*range);
      ranges.back() = *range;
    }
  }
  int64_t Busy() const {
    int64_t sum = 0;
    for (const auto* list : {&coarse, &detail}) {
      for (const IntervalSample& s : *list) {
        for (const OperatorSample& o : s.operators) sum += o.busy_ns;
      }
    }
    return sum;
  }
};

TEST(FlightRecorder, WithoutATriggerAllIsCoarse) {
  FlightRecorder flight(2 * kSecond, 5 * kSecond);
  Stored stored;
  for (int i = 0; i < 300; i++) {
    flight.Add(Tick(i), std::nullopt);
    stored.From(&flight);
  }
  flight.Finish();
  stored.From(&flight);
  EXPECT_TRUE(stored.detail.empty());
  EXPECT_TRUE(stored.ranges.empty());
  EXPECT_EQ(stored.coarse.size(), 6u);
  EXPECT_EQ(stored.coarse[1].duration_ns, 5 * kSecond);
  EXPECT_EQ(stored.Busy(), 300 * 301 / 2);
}

TEST(FlightRecorder, KeepsDetailBeforeAndAfterTheTrigger) {
  FlightRecorder flight(2 * kSecond, 5 * kSecond);
  Stored stored;
  for (int i = 0; i < 300; i++) {
    flight.Add(Tick(i), i == 150 ? std::optional<std::string>("stall") : std::nullopt);
    stored.From(&flight);
  }
  flight.Finish();
  stored.From(&flight);
  ASSERT_EQ(stored.ranges.size(), 1u);
  EXPECT_EQ(stored.ranges[0].reason, "stall");
  EXPECT_NEAR(static_cast<double>(stored.ranges[0].start_ns), 13e9, 0.11e9);
  EXPECT_NEAR(static_cast<double>(stored.ranges[0].end_ns), 17.1e9, 0.11e9);
  EXPECT_NEAR(static_cast<double>(stored.detail.size()), 41, 2);
  for (const IntervalSample& s : stored.detail) {
    EXPECT_EQ(s.duration_ns, kTick);
    ASSERT_EQ(s.steps.records.size(), 1u) << "single steps are detail";
    EXPECT_EQ(s.steps.records[0].end_ns, s.start_ns + kMs);
  }
  for (const IntervalSample& s : stored.coarse) EXPECT_TRUE(s.steps.records.empty());
  EXPECT_EQ(stored.Busy(), 300 * 301 / 2) << "nothing twice, nothing lost";
}

TEST(FlightRecorder, ALongStallIsOneRangeAndATriggerAfterItANewOne) {
  FlightRecorder flight(1 * kSecond);
  Stored stored;
  for (int i = 0; i < 200; i++) {
    const bool pulled = (i >= 50 && i < 80 && i % 5 == 0) || i == 150;
    flight.Add(Tick(i), pulled ? std::optional<std::string>("x") : std::nullopt);
    stored.From(&flight);
  }
  flight.Finish();
  stored.From(&flight);
  ASSERT_EQ(stored.ranges.size(), 2u);
  EXPECT_LT(stored.ranges[0].end_ns, stored.ranges[1].start_ns);
  EXPECT_EQ(stored.Busy(), 200 * 201 / 2);
}

TEST(FlightRecorder, MemoryIsBoundedWhateverTheRing) {
  FlightRecorder flight(600 * kSecond, 10 * kSecond, 1 << 20);
  for (int i = 0; i < 1000; i++) {
    flight.Add(Tick(i, 100), std::nullopt);
    EXPECT_LE(flight.held_bytes(), size_t{1} << 20);
  }
  EXPECT_GT(flight.intervals_cut(), 0);
}

TEST(FlightRecorder, IntervalsNeverOverlapAndSumsAreExact) {
  const uint64_t seed = TestSeed(11);
  std::mt19937_64 random(seed);
  for (int round = 0; round < 50; round++) {
    FlightRecorder flight(static_cast<int64_t>(1 + random() % 5) * kSecond, 3 * kSecond);
    Stored stored;
    const int ticks = static_cast<int>(random() % 400);
    for (int i = 0; i < ticks; i++) {
      flight.Add(Tick(i), random() % 60 == 0 ? std::optional<std::string>("x") : std::nullopt);
      if (random() % 10 == 0) stored.From(&flight);
    }
    flight.Finish();
    stored.From(&flight);
    EXPECT_EQ(stored.Busy(), int64_t{ticks} * (ticks + 1) / 2);
    std::vector<std::pair<int64_t, int64_t>> all;
    for (const auto* list : {&stored.coarse, &stored.detail}) {
      for (const IntervalSample& s : *list) all.push_back({s.start_ns, s.start_ns + s.duration_ns});
    }
    std::sort(all.begin(), all.end());
    for (size_t i = 1; i < all.size(); i++) EXPECT_EQ(all[i].first, all[i - 1].second);
  }
}

}  // namespace
}  // namespace headrace::collectors
