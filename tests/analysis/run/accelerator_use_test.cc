#include "analysis/run/accelerator_use.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "tests/analysis/accelerators.h"
#include "tests/seed.h"

namespace headrace::analysis {
namespace {

constexpr int64_t kMsNs = 1'000'000, kOneSecond = 1'000'000'000;

RunView Lasting(int64_t seconds) {
  RunView run;
  run.run.duration_ns = seconds * kOneSecond;
  return run;
}

TrainerWaits Waiting(int64_t seconds, double ratio, double step_s = 0.1) {
  TrainerWaits waits;
  waits.step_s = step_s;
  for (int64_t at = 0; at < 2 * seconds; ++at) {
    waits.rows.push_back({at * kOneSecond / 2, kOneSecond / 2, ratio});
  }
  return waits;
}

// One device, busy `busy` of the time, beside a trainer that waits `wait` of it.
std::optional<Accelerators> Look(double busy, double wait, int64_t seconds = 20) {
  RunView run = Lasting(seconds);
  AddDevice(&run, "gpu0", busy);
  return LookAtAccelerators(run, Waiting(seconds, wait));
}

TEST(AcceleratorUse, BoundsAreThoseOfTwoSharesOfTheSameTime) {
  const struct {
    double busy, wait, low, high;
  } cases[] = {{0.3, 0.75, 0.45, 0.7}, {0.5, 0.5, 0.0, 0.5}, {0.0, 0.4, 0.4, 0.4},
               {1.0, 0.9, 0.0, 0.0},   {0.4, 1.0, 0.6, 0.6}, {0.4, 0.0, 0.0, 0.0}};
  for (const auto& c : cases) {
    SCOPED_TRACE(testing::Message() << "busy " << c.busy << ", waits " << c.wait);
    const auto seen = Look(c.busy, c.wait);
    ASSERT_TRUE(seen);
    EXPECT_NEAR(seen->mean.idle_ratio, 1 - c.busy, 0.02);
    EXPECT_NEAR(seen->mean.wait_ratio, c.wait, 1e-9);
    EXPECT_NEAR(seen->mean.idle_waiting.low, c.low, 0.06);
    EXPECT_NEAR(seen->mean.idle_waiting.high, c.high, 0.06);
    ASSERT_TRUE(seen->mean.idle_interval);
    EXPECT_LE(seen->mean.idle_interval->low, seen->mean.idle_ratio);
    EXPECT_GE(seen->mean.idle_interval->high, seen->mean.idle_ratio);
  }
}

// Where idle time and waits come in turns of seconds, the bounds tell them apart although both are
// half of the whole.
TEST(AcceleratorUse, LongTurnsNarrowTheBounds) {
  for (const bool together : {true, false}) {
    RunView run = Lasting(120);
    TrainerWaits waits;
    for (int64_t at = 0; at < 120; ++at) {
      const bool first = at / 20 % 2 == 0;
      waits.rows.push_back({at * kOneSecond, kOneSecond, first ? 1.0 : 0.0});
      run.accelerator_use.push_back(
          {at * kOneSecond, kOneSecond, "gpu0", first == together ? 0.0 : 1.0});
    }
    const auto seen = LookAtAccelerators(run, waits);
    ASSERT_TRUE(seen);
    EXPECT_NEAR(seen->mean.idle_ratio, 0.5, 0.01);
    if (together) {
      EXPECT_GT(seen->mean.idle_waiting.low, 0.4);
    } else {
      EXPECT_LT(seen->mean.idle_waiting.high, 0.1);
    }
  }
}

// A trainer and a device that turn on and off as they like, seen as NVML and the store see them:
// the truth lies within the bounds.
TEST(AcceleratorUse, TheTruthLiesWithinTheBounds) {
  const uint64_t seed = TestSeed();
  SCOPED_TRACE(testing::Message() << "seed " << seed);
  Random random(seed);
  for (int round = 0; round < 200; ++round) {
    constexpr int64_t kTicks = 24'000;  // of 10 ms
    std::vector<double> waits(kTicks), idle(kTicks);
    const auto fill = [&](std::vector<double>* course) {
      const double longest = std::exp2(random.Uniform() * 10);  // ticks
      const double share = random.Uniform();
      for (size_t at = 0; at < course->size();) {
        const bool on = random.Uniform() < share;
        const auto ticks = static_cast<size_t>(1 + random.Uniform() * longest);
        for (const size_t end = std::min(course->size(), at + ticks); at < end; ++at) {
          (*course)[at] = on ? 1 : 0;
        }
      }
    };
    fill(&waits);
    fill(&idle);
    if (random.Uniform() < 0.3) idle = waits;
    const auto period = static_cast<size_t>(16 + random.Uniform() * 84);
    RunView run = Lasting(240);
    TrainerWaits rows;
    double told = 1, sum = 0, waited = 0, both = 0;
    for (size_t at = 0; at < kTicks; ++at) {
      both += waits[at] * idle[at] / kTicks;
      waited += waits[at];
      if (at >= period && at % period == 0) {
        told = 0;
        for (size_t back = 1; back <= period; ++back) told += idle[at - back];
        told = std::round(100 * told / static_cast<double>(period)) / 100;
      }
      if (at % 10 == 0) sum += told / 10;
      if ((at + 1) % 100 != 0) continue;
      const auto start = static_cast<int64_t>(at + 1 - 100) * 10 * kMsNs;
      rows.rows.push_back({start, kOneSecond, waited / 100});
      run.accelerator_use.push_back({start, kOneSecond, "gpu0", 1 - sum});
      sum = waited = 0;
    }
    const auto seen = LookAtAccelerators(run, rows);
    ASSERT_TRUE(seen);
    // The first and last sample periods are not in what the device told.
    constexpr double kEnds = 0.01;
    EXPECT_GE(both, seen->mean.idle_waiting.low - kEnds) << "round " << round;
    EXPECT_LE(both, seen->mean.idle_waiting.high + kEnds) << "round " << round;
  }
}

TEST(AcceleratorUse, TellsWhatTheDevicesAdd) {
  const struct {
    double busy, wait;
    DeviceStory story;
    bool contradict;
  } cases[] = {{0.29, 0.75, DeviceStory::kPlain, false},
               {0.96, 0.75, DeviceStory::kBusyAnyway, true},
               {0.96, 0.02, DeviceStory::kPlain, false},
               {0.93, 0.06, DeviceStory::kPlain, false},  // both small: they may be the same
               {0.40, 0.01, DeviceStory::kHostWork, false},
               {0.90, 0.01, DeviceStory::kPlain, false},
               {0.40, 0.30, DeviceStory::kPlain, false},
               {0.00, 0.75, DeviceStory::kUnused, false},
               {0.005, 0.0, DeviceStory::kUnused, false}};
  for (const auto& c : cases) {
    SCOPED_TRACE(testing::Message() << "busy " << c.busy << ", waits " << c.wait);
    const auto seen = Look(c.busy, c.wait);
    ASSERT_TRUE(seen);
    EXPECT_STREQ(DeviceStoryName(seen->story), DeviceStoryName(c.story));
    EXPECT_EQ(seen->Contradict(), c.contradict);
  }
}

TEST(AcceleratorUse, OnlyDevicesOfTheRunCount) {
  RunView run = Lasting(20);
  AddDevice(&run, "gpu0", 0.3);
  AddDevice(&run, "gpu1", 0.95);
  const auto look = [&] { return LookAtAccelerators(run, Waiting(20, 0.5)); };
  EXPECT_EQ(look()->devices.size(), 2u) << "it is not known whose they are";
  EXPECT_FALSE(look()->MostGain());
  AddUser(&run, "gpu1", 0, "others");
  ASSERT_EQ(look()->devices.size(), 1u) << "everybody on gpu1 has a pid here, and is no part of it";
  EXPECT_EQ(look()->devices[0].device, "gpu0");
  AddUser(&run, "gpu1", 0, "unseen");
  EXPECT_EQ(look()->devices.size(), 2u) << "in a container, unseen pids may be the run's own";
  AddUser(&run, "gpu0", 77);
  ASSERT_EQ(look()->devices.size(), 1u);
  EXPECT_EQ(look()->devices[0].pids, std::vector<int64_t>{77});
  EXPECT_NEAR(look()->MostGain().value_or(0), 1 / 0.3, 0.1);
  EXPECT_FALSE(look()->mean.shared);
  AddUser(&run, "gpu0", 0, "others");
  EXPECT_TRUE(look()->mean.shared);
  EXPECT_FALSE(look()->MostGain()) << "a part of what keeps it busy is not the run's";
}

TEST(AcceleratorUse, DevicesOfOthersAloneAreNone) {
  RunView run = Lasting(20);
  AddDevice(&run, "gpu0", 0.95);
  AddUser(&run, "gpu0", 0, "others");
  EXPECT_FALSE(LookAtAccelerators(run, Waiting(20, 0.5)));
}

TEST(AcceleratorUse, UnusedDevicesAreLeftOutBesideUsedOnes) {
  RunView run = Lasting(20);
  AddDevice(&run, "gpu0", 0.0);
  AddDevice(&run, "gpu1", 0.4);
  AddDevice(&run, "gpu2", 0.6);
  const auto seen = LookAtAccelerators(run, Waiting(20, 0.5));
  ASSERT_TRUE(seen);
  ASSERT_EQ(seen->devices.size(), 2u);
  EXPECT_NEAR(seen->mean.idle_ratio, 0.5, 0.02);
}

TEST(AcceleratorUse, ADeviceIsHeldAgainstItsOwnRank) {
  RunView run = Lasting(20);
  AddDevice(&run, "gpu0", 0.3);
  AddDevice(&run, "gpu1", 0.3);
  AddUser(&run, "gpu0", 500);
  AddUser(&run, "gpu1", 501);
  TrainerWaits waits = Waiting(20, 0.35);
  waits.by_rank = {{500, 0.1}, {501, 0.6}};
  const auto seen = LookAtAccelerators(run, waits);
  ASSERT_TRUE(seen);
  ASSERT_EQ(seen->devices.size(), 2u);
  EXPECT_NEAR(seen->devices[0].wait_ratio, 0.1, 1e-9);
  EXPECT_NEAR(seen->devices[0].idle_waiting.high, 0.1, 1e-9);
  EXPECT_NEAR(seen->devices[1].wait_ratio, 0.6, 1e-9);
  EXPECT_NEAR(seen->devices[1].idle_waiting.low, 0.3, 0.02);
  EXPECT_NEAR(seen->mean.wait_ratio, 0.35, 1e-9);
}

// What is told in the first second may be of the time before, in which nothing ran yet.
TEST(AcceleratorUse, TheFirstSamplePeriodIsLeftOut) {
  RunView run = Lasting(7);
  AddDevice(&run, "gpu0", 0.54, 0);
  run.accelerator_use[0].use_ratio = 0;
  const auto seen = LookAtAccelerators(run, Waiting(7, 0.9));
  ASSERT_TRUE(seen);
  EXPECT_NEAR(seen->mean.busy_ratio(), 0.54, 1e-6);
}

TEST(AcceleratorUse, NothingIsSaidOfTooLittle) {
  RunView run = Lasting(20);
  EXPECT_FALSE(LookAtAccelerators(run, Waiting(20, 0.5))) << "no device";
  AddDevice(&run, "gpu0", 0.5);
  EXPECT_FALSE(LookAtAccelerators(run, {})) << "no waits";
  EXPECT_FALSE(LookAtAccelerators(run, Waiting(1, 0.5))) << "shorter than a stretch";
  EXPECT_FALSE(LookAtAccelerators(run, Waiting(20, 0.5, 10))) << "two steps tell no wait";
  run.accelerator_use.erase(run.accelerator_use.begin());
  run.accelerator_use.resize(1);
  EXPECT_TRUE(LookAtAccelerators(run, Waiting(20, 0.5))) << "half a stretch";
  run.accelerator_use[0].start_ns = 40 * kOneSecond;
  EXPECT_FALSE(LookAtAccelerators(run, Waiting(20, 0.5))) << "of another time";
  const auto seen = Look(0.5, 0.5, 4);
  ASSERT_TRUE(seen);
  EXPECT_FALSE(seen->mean.idle_interval) << "two stretches have no interval";
}

// Figures that cannot be: shares beyond all, intervals without length, a step of infinite length.
TEST(AcceleratorUse, DamagedFiguresDoNoHarm) {
  RunView run = Lasting(20);
  AddDevice(&run, "gpu0", 7);
  for (AcceleratorUseRow& row : run.accelerator_use) row.use_ratio = 7;
  run.accelerator_use.push_back({19 * kOneSecond, 0, "gpu0", std::nan("")});
  run.accelerator_use.push_back({19 * kOneSecond, -5, "", -3});
  const auto seen = LookAtAccelerators(run, Waiting(20, 3));
  ASSERT_TRUE(seen);
  EXPECT_EQ(seen->mean.idle_ratio, 0);
  EXPECT_LE(seen->mean.wait_ratio, 1);
  EXPECT_FALSE(LookAtAccelerators(run, Waiting(20, 0.5, HUGE_VAL)));
}

}  // namespace
}  // namespace headrace::analysis
