// The World itself: what is known of queues and cores without any simulation.
#include "tests/validation/world.h"

#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <sstream>

#include "tests/validation/generator.h"

namespace headrace::validation {
namespace {

Station Simple(const char* name, std::vector<size_t> inputs, double cpu_s, double blocked_s,
               int threads = 1, int queue = 4) {
  Station station;
  station.name = name;
  station.inputs = std::move(inputs);
  station.threads = threads;
  station.queue = queue;
  station.parts = {{name, cpu_s, blocked_s, 0, 0, 0, Shape::kFixed, -1}};
  return station;
}

TEST(World, ASlowStationSetsTheRate) {
  World world;
  world.stations = {Simple("a", {}, 0, 0.001), Simple("b", {0}, 0, 0.004, 2)};
  world.consumer_s = 0.001;
  EXPECT_NEAR(RateOf(world, 1000, 1), 500, 1);
}

TEST(World, CoresAreSharedAndCounted) {
  World world;
  world.cores = 2;
  world.stations = {Simple("a", {}, 0.002, 0, 8)};
  EXPECT_NEAR(RateOf(world, 4000, 1), 1000, 5);
  const Ledger ledger = Play(world, 4000, 1e9, 1);
  EXPECT_NEAR(ledger.parts[0][0].cpu_s / 0.002, static_cast<double>(ledger.parts[0][0].completions),
              9);
  EXPECT_NEAR(ledger.busy_cores_s, 2 * ledger.time_s, 0.01);
}

TEST(World, ContentionMakesWorkOnTheCoresLonger) {
  World world;
  world.cores = 4;
  world.contention = 0.1;
  world.stations = {Simple("a", {}, 0.004, 0, 4)};
  const Ledger ledger = Play(world, 2000, 1e9, 1);
  EXPECT_NEAR(ledger.parts[0][0].cpu_s / static_cast<double>(ledger.parts[0][0].completions),
              0.004 * 1.3, 1e-5);
}

// Four equal stations, one worker each, lognormal costs: peers' tandem recursion gives 0.79 of the
// bound at a CV of 1 and 4 places, and 0.97 at 0.3.
TEST(World, FiniteQueuesCostWhatTheTandemRecursionSays) {
  for (const auto& [cv, share] : {std::pair(1.0, 0.79), std::pair(0.3, 0.97)}) {
    World world;
    world.stations = {Simple("a", {}, 0, 0.01), Simple("b", {0}, 0, 0.01),
                      Simple("c", {1}, 0, 0.01), Simple("d", {2}, 0, 0.01)};
    for (Station& station : world.stations) {
      station.parts[0].cv = cv;
      station.parts[0].shape = Shape::kLogNormal;
    }
    EXPECT_NEAR(RateOf(world, 20000, 3), 100 * share, 2) << cv;
  }
}

// In-order delivery of 8 workers at a CV of 0.67. Besides the window of 8 each worker may hold one
// element that is not let in, so that up to 16 are under way: about 0.8 of the capacity.
TEST(World, OrderCostsCapacity) {
  World world;
  world.stations = {Simple("a", {}, 0, 0.008, 8, 100)};
  world.stations[0].ordered = true;
  world.stations[0].window = 8;
  world.stations[0].parts[0].cv = 0.67;
  world.stations[0].parts[0].shape = Shape::kLogNormal;
  const double narrow = RateOf(world, 20000, 3);
  EXPECT_GT(narrow, 740);
  EXPECT_LT(narrow, 880);
  world.stations[0].window = 64;
  EXPECT_GT(RateOf(world, 20000, 3), 960);
}

TEST(World, TreesKeepTheirRatios) {
  World world;
  Station join = Simple("join", {0, 1}, 0, 0.001);
  join.take = 4;
  Station cut = Simple("cut", {2}, 0, 0.0005);
  cut.emit = 2;
  world.stations = {Simple("a", {}, 0, 0.002), Simple("b", {}, 0, 0.001), join, cut};
  EXPECT_EQ(Visits(world), (std::vector<double>{1, 1, 0.5, 0.5}));
  const Ledger ledger = Play(world, 1000, 1e9, 1);
  EXPECT_NEAR(static_cast<double>(ledger.queues[0].gets), 1000, 20);
  EXPECT_NEAR(static_cast<double>(ledger.queues[1].gets), 1000, 20);
  EXPECT_NEAR(RateOf(world, 2000, 1), 500, 5);  // a is the slower source, one of it per batch
  world.stations[2].zips = true;                // now 4 of each per firing
  EXPECT_EQ(Visits(world), (std::vector<double>{2, 2, 0.5, 0.5}));
  EXPECT_NEAR(RateOf(world, 2000, 1), 250, 3);
}

TEST(World, LocksServeOneAtATime) {
  World world;
  world.shared = {{"table", false, 1, 1}};
  world.stations = {Simple("a", {}, 0, 0, 4)};
  world.stations[0].parts[0].held_blocked_s = 0.002;
  world.stations[0].parts[0].shared = 0;
  EXPECT_NEAR(RateOf(world, 1000, 1), 500, 2);
  world.shared[0].slow = 0.5;
  EXPECT_NEAR(RateOf(world, 1000, 1), 1000, 4);
}

TEST(World, EveryGeneratedOneRuns) {
  for (uint64_t seed = 1; seed <= 40; ++seed) {
    const Planted planted = Generate(seed);
    size_t parts = 0;
    for (const Station& station : planted.world.stations) parts += station.parts.size();
    EXPECT_GE(parts, 2u);
    EXPECT_LE(parts, 20u);
    const double rate = RateOf(planted.world, 200, seed);
    EXPECT_GT(rate, 5) << seed;
    EXPECT_LT(rate, 500) << seed;
    EXPECT_EQ(RateOf(Generate(seed).world, 200, seed), rate) << "the same seed, the same world";
  }
}

// The witness must not know what it judges.
TEST(World, SharesNoCodeWithAnalysis) {
  for (const char* name :
       {"world.h", "world.cc", "dice.h", "generator.h", "generator.cc", "truth.h", "truth.cc"}) {
    std::ifstream file(std::string(HEADRACE_SOURCE_DIR) + "/tests/validation/" + name);
    ASSERT_TRUE(file) << name;
    std::stringstream text;
    text << file.rdbuf();
    EXPECT_EQ(text.str().find("#include \"analysis/"), std::string::npos) << name;
  }
}

}  // namespace
}  // namespace headrace::validation
