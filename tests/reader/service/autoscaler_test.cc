// The autoscaler in the simulated service (fleet_world.h): rates over seeds, printed, and held
// against gates; and what it does with observations that are missing, stale or impossible.
#include "reader/service/autoscaler.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <limits>

#include "base/error.h"
#include "tests/reader/service/fleet_world.h"

namespace headrace::reader {
namespace {

constexpr double kNoCeiling = 1e18;
constexpr int kIntervals = 720;  // two hours of 10 s
constexpr int kStill = 40;       // intervals without a change: settled

std::function<double(double)> Always(double value) {
  return [value](double) { return value; };
}

// The interval after which `wanted` does not change for kStill intervals, from `from` on.
size_t Settled(const std::vector<int>& wanted, size_t from) {
  size_t still = 0;
  for (size_t i = std::max<size_t>(from, 1); i < wanted.size(); ++i) {
    still = wanted[i] == wanted[i - 1] ? still + 1 : 0;
    if (still == kStill) return i - kStill;
  }
  return wanted.size();
}

// Any service with constant demand and nothing but workers to limit it.
World AnyConstant(uint64_t seed) {
  std::mt19937_64 random(seed * 7919);
  const auto between = [&](double low, double high) {
    return low + (high - low) * std::uniform_real_distribution<double>(0, 1)(random);
  };
  World world;
  world.name = "constant";
  world.demand = Always(std::exp(between(std::log(12.0), std::log(500.0))));
  world.ceiling = Always(kNoCeiling);
  world.cv = between(0, 0.5);
  world.demand_cv = between(0, 0.05);
  world.startup_s = between(5, 120);
  world.workers = static_cast<int>(between(1, 40));
  world.room_s = between(0.5, 4);
  world.missing = between(0, 0.1);
  world.blur = between(0, 0.02);
  return world;
}

// Sanitizers take ten times as long.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool kSanitized = true;
#else
constexpr bool kSanitized = false;
#endif
int Seeds(int count) { return kSanitized ? std::max(20, count / 10) : count; }

double Quantile(std::vector<double> values, double q) {
  std::sort(values.begin(), values.end());
  return values[static_cast<size_t>(q * static_cast<double>(values.size() - 1))];
}

// Upper end of the 95 % Wilson interval of `bad` of `all`.
double WilsonHigh(int bad, int all) {
  const double z = 1.96, n = all, p = bad / n;
  return (p + z * z / (2 * n) + z * std::sqrt(p * (1 - p) / n + z * z / (4 * n * n))) /
         (1 + z * z / n);
}

TEST(AutoscalerGates, ConstantDemandHasAtMostOneReversalAfterItSettled) {
  const int seeds = Seeds(2000);
  int oscillate = 0, never = 0, starve = 0, wrongly_upstream = 0;
  std::vector<double> settled, worth;
  for (uint64_t seed = 1; seed <= static_cast<uint64_t>(seeds); ++seed) {
    const World world = AnyConstant(seed);
    Autoscaler scaler({}, world.workers);
    int upstream = 0;
    const Scaler watched = [&](const FleetObservation& seen, double) {
      const AutoscaleDecision decision = scaler.Observe(seen);
      upstream += decision.limit == FleetLimit::kUpstream;
      return decision.wanted;
    };
    const Judged judged = Live(world, watched, kIntervals, seed);
    const size_t at = Settled(judged.wanted, 0);
    never += at == judged.wanted.size();
    settled.push_back(static_cast<double>(at));
    oscillate += Reversals(judged.wanted, at) > 1;
    starve += judged.starved > 0.05 + 2.0 * world.startup_s / (kIntervals * kSteps);
    wrongly_upstream += upstream > 0;
    worth.push_back(judged.waste);
  }
  std::printf(
      "constant demand, %d seeds: more than one reversal after settling in %d (95 %% at most %.2f "
      "%%),\n  never settled %d, settled after %.0f intervals (median; 90 %%: %.0f), starved more "
      "than 5 %% over all %d,\n  called upstream-bound and is not %d, workers' waste %.1f %% "
      "(median)\n",
      seeds, oscillate, 100 * WilsonHigh(oscillate, seeds), never, Quantile(settled, 0.5),
      Quantile(settled, 0.9), starve, wrongly_upstream, 100 * Quantile(worth, 0.5));
  EXPECT_LE(WilsonHigh(oscillate, seeds), kSanitized ? 0.05 : 0.01);
  EXPECT_EQ(never, 0);
  EXPECT_LE(Quantile(settled, 0.9), 50);
  EXPECT_LE(starve, seeds / 100);
  EXPECT_LE(wrongly_upstream, seeds / 100);
}

// Intervals seen from `step` on until `wanted` stays within a worker or 15 % of where it ends.
double Arrives(const std::vector<int>& wanted, size_t step) {
  const int end = wanted.back();
  const double near = std::max(1.0, 0.15 * end);
  size_t last = step;
  for (size_t i = step; i < wanted.size(); ++i) {
    if (std::abs(wanted[i] - end) > near) last = i + 1;
  }
  return static_cast<double>(last - step + 1);
}

TEST(AutoscalerGates, SettlesSoonAfterAStep) {
  const int seeds = Seeds(800);
  std::vector<double> up, down;
  int missed = 0, oscillate = 0;
  for (int seed = 1; seed <= seeds; ++seed) {
    World world = AnyConstant(static_cast<uint64_t>(seed));
    std::mt19937_64 random(static_cast<uint64_t>(seed));
    const double before = world.demand(0);
    const double size = std::uniform_real_distribution<double>(0.3, 1.4)(random);
    const double factor = std::exp(seed % 2 == 0 ? size : -size);
    constexpr double kStepS = 3000;
    world.demand = [=](double t) { return t < kStepS ? before : before * factor; };
    const Judged judged = Live(world, Ours(world.workers), kIntervals, static_cast<uint64_t>(seed));
    const auto step = static_cast<size_t>(kStepS / kSteps);
    (factor > 1 ? up : down).push_back(Arrives(judged.wanted, step));
    oscillate += Reversals(judged.wanted, step + static_cast<size_t>(kStill)) > 1;
    const double enough = before * factor / world.rate;
    missed += judged.wanted.back() < 0.9 * enough || judged.wanted.back() > 2 * enough + 3;
  }
  std::printf(
      "a step of demand by 0.25 to 4, %d seeds: asked for after %.0f intervals upwards (median; 90 "
      "%%: "
      "%.0f), %.0f downwards (90 %%: %.0f),\n  ends with less than 0.9 or more than 2 times the "
      "workers in %d, more than one reversal 40 intervals after the step in %d\n",
      seeds, Quantile(up, 0.5), Quantile(up, 0.9), Quantile(down, 0.5), Quantile(down, 0.9), missed,
      oscillate);
  EXPECT_LE(Quantile(up, 0.5), 3);
  EXPECT_LE(Quantile(up, 0.9), 15);
  EXPECT_LE(Quantile(down, 0.9), 15);
  EXPECT_LE(missed, seeds / 50);
  EXPECT_LE(oscillate, seeds / 20);
}

TEST(AutoscalerGates, WhatAllWorkersShareIsFoundAndNotPaidFor) {
  const int seeds = Seeds(400);
  int found = 0, many = 0, few = 0, oscillate = 0;
  for (uint64_t seed = 1; seed <= static_cast<uint64_t>(seeds); ++seed) {
    World world = AnyConstant(seed);
    std::mt19937_64 random(seed);
    const double share = std::uniform_real_distribution<double>(0.25, 0.8)(random);
    const double through = std::max(20.0, share * world.demand(0));
    world.demand = Always(through / share);
    world.ceiling = Always(through);
    world.cv = std::min(world.cv, 0.3);
    Autoscaler scaler({}, world.workers);
    FleetLimit last = FleetLimit::kUnknown;
    const Scaler watched = [&](const FleetObservation& seen, double) {
      const AutoscaleDecision decision = scaler.Observe(seen);
      if (decision.limit != FleetLimit::kUnknown) last = decision.limit;
      return decision.wanted;
    };
    const Judged judged = Live(world, watched, kIntervals, seed);
    found += last == FleetLimit::kUpstream;
    const double enough = through / world.rate;
    many += judged.wanted.back() > 1.5 * enough + 2;
    few += judged.wanted.back() < 0.9 * enough;
    oscillate += Reversals(judged.wanted, Settled(judged.wanted, 0)) > 1;
  }
  std::printf(
      "storage that lets 25 to 80 %% through, %d seeds: said so at the end in %d, more than 1.5 "
      "times the workers that reach it in %d,\n  too few in %d, more than one reversal after "
      "settling in %d\n",
      seeds, found, many, few, oscillate);
  EXPECT_GE(found, seeds * 95 / 100);
  EXPECT_LE(many, seeds / 20);
  EXPECT_LE(few, seeds / 50);
  EXPECT_LE(oscillate, seeds / 10);
}

TEST(AutoscalerGates, AgainstCachewsRuleAndAUtilisationTarget) {
  const int seeds = Seeds(20);
  std::vector<World> worlds;
  const auto add = [&](const char* name, std::function<double(double)> demand, int workers) {
    World world;
    world.name = name;
    world.demand = std::move(demand);
    world.ceiling = Always(kNoCeiling);
    world.workers = workers;
    world.cv = 0.3;
    worlds.push_back(world);
    return &worlds.back();
  };
  add("80/s, quiet", Always(80), 4)->cv = 0.05;
  add("80/s, cv 0.3", Always(80), 4);
  add("300/s, cv 0.5", Always(300), 4)->cv = 0.5;
  add("80/s, from 40 workers", Always(80), 40);
  add(
      "50, 200, 50/s", [](double t) { return t > 2000 && t < 4500 ? 200.0 : 50.0; }, 6);
  add(
      "100 or 50/s, 10 min each", [](double t) { return std::fmod(t, 1200) < 600 ? 100. : 50.; },
      6);
  add(
      "100 +- 50/s in 1 h", [](double t) { return 100 + 50 * std::sin(t / 3600 * 2 * M_PI); }, 6);
  add("200/s, storage lets 60", Always(200), 4)->ceiling = Always(60);
  add("100/s, workers fail", Always(100), 4)->failures_per_hour = 1;
  add("100/s, a third unseen", Always(100), 4)->missing = 0.33;

  // Prices of Pecan's evaluation (ATC 2024): a consumer and a worker an hour.
  constexpr double kConsumer = 4.96, kWorker = 0.427;
  std::printf("%d seeds, two hours; a worker makes 10/s and starts in 20 to 60 s\n", seeds);
  std::printf("%-26s  %-24s  %-24s  %-24s\n", "", "headrace", "Cachew, +-1", "utilisation 70 %");
  std::printf("%-26s", "demand of batches");
  for (int i = 0; i < 3; ++i) std::printf("  %5s %5s %4s %7s", "wait", "waste", "chg", "price");
  std::printf("\n");
  double starved[3] = {}, price[3] = {}, waste[3] = {};
  for (const World& world : worlds) {
    std::printf("%-26s", world.name.c_str());
    for (int which = 0; which < 3; ++which) {
      double wait = 0, idle = 0, changes = 0, cost = 0;
      for (uint64_t seed = 1; seed <= static_cast<uint64_t>(seeds); ++seed) {
        const Scaler scaler = which == 0   ? Ours(world.workers)
                              : which == 1 ? CachewRule(world.workers)
                                           : UtilisationTarget(world.workers);
        const Judged judged = Live(world, scaler, kIntervals, seed);
        wait += judged.starved / seeds;
        idle += judged.waste / seeds;
        changes += static_cast<double>(Changes(judged.wanted)) / seeds;
        cost += (kConsumer + kWorker * judged.workers) / (1 - judged.starved) / seeds;
      }
      std::printf("  %4.1f%% %4.1f%% %4.0f %7.2f", 100 * wait, 100 * idle, changes, cost);
      starved[which] += wait / static_cast<double>(worlds.size());
      waste[which] += idle / static_cast<double>(worlds.size());
      price[which] += cost / static_cast<double>(worlds.size());
    }
    std::printf("\n");
  }
  std::printf("%-26s", "mean");
  for (int i = 0; i < 3; ++i) {
    std::printf("  %4.1f%% %4.1f%%      %7.2f", 100 * starved[i], 100 * waste[i], price[i]);
  }
  std::printf("\nprice: of an hour's demand, consumers %.2f and a worker %.3f an hour\n", kConsumer,
              kWorker);
  EXPECT_LT(starved[0], starved[1]);  // the batches arrive,
  EXPECT_LT(waste[0], waste[2]);      // without the workers that a utilisation target keeps idle,
  EXPECT_LT(price[0], price[1]);      // at the least price
  EXPECT_LT(price[0], price[2]);
}

// One interval in which `ready` workers at 10 batches/s serve a demand of `demand`.
FleetObservation Interval(int i, int ready, double demand) {
  const double could = 10.0 * ready, takes = std::min(could, demand);
  return {.time_s = 10.0 * (i + 1),
          .seconds = 10,
          .serving = static_cast<double>(ready),
          .ready = ready,
          .batches = 10 * takes,
          .starved_ratio = 1 - takes / demand,
          .waste_ratio = 1 - takes / could};
}

TEST(Autoscaler, OneDecisionGoesAllTheWay) {
  Autoscaler scaler({}, 4);
  AutoscaleDecision decision;
  for (int i = 0; i < 4; ++i) decision = scaler.Observe(Interval(i, 4, 200));
  EXPECT_EQ(decision.wanted, 20);
  EXPECT_EQ(decision.change, 16);
  EXPECT_EQ(decision.limit, FleetLimit::kWorkers);
  EXPECT_EQ(decision.reason,
            "consumers wait 80.0 % of their time: 200 batches/s at 10.0 batches/s a worker need 20 "
            "workers (between 20 and 20)");
  EXPECT_EQ(decision.needed, 20);
  EXPECT_NEAR(decision.demand->value, 200, 1e-9);
  EXPECT_NEAR(decision.rate_per_worker->value, 10, 1e-9);
}

TEST(Autoscaler, WaitsForWhatItAskedForAndLearnsHowLongThatTakes) {
  Autoscaler scaler({.startup_s = 30}, 4);
  int i = 0;
  for (; i < 4; ++i) scaler.Observe(Interval(i, 4, 200));
  for (; i < 12; ++i) {
    FleetObservation seen = Interval(i, 4, 200);
    seen.starting = 16;
    const AutoscaleDecision decision = scaler.Observe(seen);
    EXPECT_EQ(decision.change, 0) << decision.reason;
    EXPECT_EQ(decision.wanted, 20);
  }
  scaler.Observe(Interval(i, 20, 200));
  EXPECT_NEAR(scaler.startup_s(), 90, 1e-9);
}

// Intervals until 20 workers become `wanted` for that demand.
int IntervalsUntilFewer(double demand, int wanted) {
  Autoscaler scaler({}, 20);
  for (int i = 0; i < 40; ++i) {
    const AutoscaleDecision decision = scaler.Observe(Interval(i, 20, demand));
    if (decision.change == 0) continue;
    EXPECT_EQ(decision.wanted, wanted);
    EXPECT_EQ(decision.limit, FleetLimit::kConsumers);
    return i + 1;
  }
  return 0;
}

TEST(Autoscaler, ShrinksOnWasteOnlyAfterAWhile) {
  EXPECT_EQ(IntervalsUntilFewer(160, 16), 12);
  EXPECT_EQ(IntervalsUntilFewer(50, 5), 8) << "far too many are seen sooner";
}

// The workers wanted at last, where `workers` have `before` to do and then `after`.
int WantedAtLast(int workers, double before, double after) {
  Autoscaler scaler({}, workers);
  int i = 0;
  for (; i < 12; ++i) workers = scaler.Observe(Interval(i, workers, before)).wanted;
  for (; i < 60; ++i) workers = scaler.Observe(Interval(i, workers, after)).wanted;
  return workers;
}

TEST(Autoscaler, WhatItGrewToIsNotTakenBackForOneWorker) {
  EXPECT_EQ(WantedAtLast(9, 86, 78), 8);
  EXPECT_EQ(WantedAtLast(4, 86, 78), 9);
  EXPECT_EQ(WantedAtLast(4, 86, 60), 6);
  EXPECT_EQ(WantedAtLast(1, 18, 8), 1) << "another demand";
  EXPECT_EQ(WantedAtLast(1, 18, 10), 1);
}

// The mean of the demand follows by blocks of intervals: it is not waited for, and no number in
// between is tried.
TEST(Autoscaler, ARiseOfDemandIsFollowedInOneDecision) {
  for (const double first : {90, 200}) {  // it rises within an interval, or between two
    for (int quiet = 12; quiet < 16; ++quiet) {
      SCOPED_TRACE(testing::Message() << first << " after " << quiet);
      Autoscaler scaler({}, 5);
      int i = 0;
      for (; i < quiet; ++i) EXPECT_EQ(scaler.Observe(Interval(i, 5, 50)).wanted, 5);
      AutoscaleDecision decision = scaler.Observe(Interval(i++, 5, first));
      while (decision.change == 0 && i < quiet + 8)
        decision = scaler.Observe(Interval(i++, 5, 200));
      EXPECT_EQ(decision.wanted, 20) << decision.reason;
      EXPECT_EQ(decision.needed, 20);
      EXPECT_NEAR(decision.demand->value, 200, 1e-9);
      EXPECT_LE(i, quiet + 5);
    }
  }
}

// The workers wanted after 12 intervals at 50 a second with 5 workers, and then at those.
int WantedAfter(const std::vector<double>& demands) {
  Autoscaler scaler({}, 5);
  int i = 0;
  for (; i < 12; ++i) scaler.Observe(Interval(i, 5, 50));
  AutoscaleDecision decision;
  for (const double demand : demands) {
    decision = scaler.Observe(Interval(i++, 5, demand));
    if (decision.change != 0) break;
  }
  return decision.wanted;
}

TEST(Autoscaler, WhatIsNoLastingRiseIsNotFollowedAsOne) {
  EXPECT_LE(WantedAfter({500, 80, 80, 80, 80}), 9) << "a peak, and a small rise after it";
  // While it rises it is followed, at least to what it was last.
  const int ramp = WantedAfter({70, 90, 110, 130, 150, 170});
  EXPECT_GE(ramp, 9);
  EXPECT_LE(ramp, 17);
}

// A rank that made hardly a step in an interval waited for something else than workers.
TEST(Autoscaler, AStallIsNoRise) {
  for (const double starved : {0.93, 1.0}) {
    SCOPED_TRACE(starved);
    Autoscaler scaler({}, 5);
    int i = 0, ready = 5;
    for (; i < 12; ++i) scaler.Observe(Interval(i, ready, 50));
    for (; i < 15; ++i) {
      FleetObservation seen = Interval(i, ready, 50);
      seen.batches = 60;  // 6 a second, as if 86 or 300 were asked for
      seen.starved_ratio = starved;
      seen.waste_ratio = 0.88;
      ready = scaler.Observe(seen).wanted;
      EXPECT_LE(ready, 8);
    }
  }
}

TEST(Autoscaler, WorkersIdleWhileConsumersStarveAreNotAddedTo) {
  World world;
  world.demand = Always(80);
  world.ceiling = Always(kNoCeiling);
  world.delivery = 50;
  world.workers = 10;
  Autoscaler scaler({}, 10);
  FleetLimit last = FleetLimit::kUnknown;
  const Judged judged = Live(
      world,
      [&](const FleetObservation& seen, double) {
        const AutoscaleDecision decision = scaler.Observe(seen);
        last = decision.limit;
        return decision.wanted;
      },
      100, 1);
  EXPECT_EQ(last, FleetLimit::kDelivery);
  EXPECT_LE(*std::max_element(judged.wanted.begin(), judged.wanted.end()), 10);
}

TEST(Autoscaler, WhatIsNotKnownOrImpossibleHoldsTheNumber) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const std::vector<std::pair<const char*, std::function<void(FleetObservation*)>>> cases = {
      {"no batches", [](FleetObservation* o) { o->batches.reset(); }},
      {"no starvation", [](FleetObservation* o) { o->starved_ratio.reset(); }},
      {"no waste", [](FleetObservation* o) { o->waste_ratio.reset(); }},
      {"nan", [=](FleetObservation* o) { o->starved_ratio = nan; }},
      {"negative", [](FleetObservation* o) { o->batches = -1; }},
      {"above one", [](FleetObservation* o) { o->waste_ratio = 1.5; }},
      {"no length", [](FleetObservation* o) { o->seconds = 0; }},
      {"time nan", [=](FleetObservation* o) { o->time_s = nan; }},
      {"time goes back", [](FleetObservation* o) { o->time_s = -5; }},
      {"nobody served", [](FleetObservation* o) { o->serving = 0; }},
      {"fewer than none", [](FleetObservation* o) { o->ready = -1; }},
      {"too many", [](FleetObservation* o) { o->ready = std::numeric_limits<int>::max(); }},
  };
  for (const auto& [name, spoil] : cases) {
    Autoscaler scaler({}, 4);
    scaler.Observe(Interval(0, 4, 200));
    for (int i = 1; i < 40; ++i) {
      FleetObservation seen = Interval(i, 4, 200);
      spoil(&seen);
      const AutoscaleDecision decision = scaler.Observe(seen);
      EXPECT_EQ(decision.wanted, 4) << name;
      EXPECT_NE(decision.reason.find(": held"), std::string::npos) << name << decision.reason;
    }
  }
}

TEST(Autoscaler, AGapMakesWhatWasSeenBeforeItWorthless) {
  Autoscaler scaler({}, 4);
  for (int i = 0; i < 3; ++i) scaler.Observe(Interval(i, 4, 200));
  // One interval more would have been enough; an hour later it is the first.
  EXPECT_EQ(scaler.Observe(Interval(360, 4, 200)).change, 0);
  EXPECT_EQ(scaler.Observe(Interval(361, 4, 200)).change, 0);
  EXPECT_EQ(scaler.Observe(Interval(362, 4, 200)).change, 0);
  EXPECT_EQ(scaler.Observe(Interval(363, 4, 200)).wanted, 20);
}

TEST(Autoscaler, KeepsItsBounds) {
  Autoscaler most({.most = 10}, 4), least({.least = 8}, 20), steps({.most_growth = 2}, 4);
  int few = 20;
  for (int i = 0; i < 60; ++i) {
    EXPECT_LE(most.Observe(Interval(i, 4, 1e6)).wanted, 10);
    few = least.Observe(Interval(i, few, 20)).wanted;
    EXPECT_GE(few, 8);
    if (i < 5) {
      EXPECT_LE(steps.Observe(Interval(i, 4, 1e6)).wanted, 8);
    }
  }
  EXPECT_EQ(few, 8);
  Autoscaler full({.most = 4}, 4);
  AutoscaleDecision decision;
  for (int i = 0; i < 20; ++i) decision = full.Observe(Interval(i, 4, 200));
  EXPECT_EQ(decision.limit, FleetLimit::kBound);
}

TEST(Autoscaler, WithPricesWorkersAreBoughtWhileTheyAreWorthIt) {
  World world;
  world.demand = Always(100);
  world.ceiling = Always(kNoCeiling);
  world.cv = 0.4;
  const auto workers = [&](double price) {
    AutoscaleOptions options;
    options.worker_price = price;
    options.consumers_price = 10;
    return Live(world, Ours(4, options), kIntervals, 1).wanted.back();
  };
  EXPECT_GT(workers(0.01), workers(0.8));
}

TEST(Autoscaler, RefusesOptionsThatContradictEachOther) {
  std::vector<AutoscaleOptions> bad(9);
  bad[0].least = 0;
  bad[1].least = 10, bad[1].most = 5;
  bad[2].starved_target = 0.2;
  bad[3].waste_line = 0;
  bad[4].grow_intervals = 1;
  bad[5].most_growth = 1;
  bad[6].worker_price = 1;
  bad[7].startup_s = -1;
  bad[8].most = std::numeric_limits<int>::max();
  for (size_t i = 0; i < bad.size(); ++i) {
    try {
      Autoscaler scaler(bad[i], 4);
      ADD_FAILURE() << i << " was taken";
    } catch (const Error& e) {
      EXPECT_EQ(e.code(), ExitCode::kUsage) << i;
      EXPECT_FALSE(e.fix().empty()) << i;
    }
  }
}

// Numbers as nobody should send them: never more than the bounds, never a crash.
TEST(Autoscaler, TakesAnything) {
  for (uint64_t seed = 1; seed <= 300; ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937_64 random(seed);
    const auto any = [&]() -> double {
      const double values[] = {0,
                               -1,
                               1,
                               0.5,
                               1e-300,
                               1e300,
                               1e9,
                               0.01,
                               0.9,
                               1e18,
                               10,
                               std::numeric_limits<double>::infinity(),
                               std::numeric_limits<double>::quiet_NaN()};
      return values[random() % std::size(values)];
    };
    Autoscaler scaler({.least = 2, .most = 50}, static_cast<int>(random() % 100));
    double now = 0;
    for (int i = 0; i < 300; ++i) {
      now += random() % 3 == 0 ? any() : 10;
      FleetObservation seen{.time_s = now, .seconds = any(), .serving = any()};
      seen.ready = static_cast<int>(random() % 60) - 2;
      seen.starting = static_cast<int>(random() % 20) - 2;
      seen.batches = any();
      seen.starved_ratio = any();
      seen.waste_ratio = any();
      if (random() % 4 == 0) seen.starved_ratio.reset();
      const AutoscaleDecision decision = scaler.Observe(seen);
      ASSERT_GE(decision.wanted, 2);
      ASSERT_LE(decision.wanted, 50);
      ASSERT_FALSE(decision.reason.empty());
    }
  }
}

}  // namespace
}  // namespace headrace::reader
