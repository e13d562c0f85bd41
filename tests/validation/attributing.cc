// Trials of attribution: a World recorded as it is and as it is with one to three things changed.
// What each of them truly carries of the change in rate is the Shapley value over plays of the
// World with every set of them; what analysis says is taken from the recordings alone.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <set>

#include "analysis/comparison/attribution.h"
#include "tests/validation/bench.h"
#include "tests/validation/exhaustive.h"
#include "tests/validation/generator.h"
#include "tests/validation/recorder.h"

namespace headrace::validation {
namespace {

constexpr size_t kRuns = 3;  // of each side
constexpr int kPlays = 3;
constexpr int64_t kTriedBatches = 600;
constexpr int kTries = 20;
constexpr double kRateMoved = 0.07;  // of its logarithm
constexpr double kCostMoved = 0.10;  // of all CPU or blocked time

using analysis::AttributedTo;
using analysis::Attribution;
using analysis::AttributionRow;

struct Change {
  std::string text;
  std::function<void(World*)> make;
  // The rows that are right, by kind and name.
  std::set<std::pair<AttributedTo, std::string>> rows;
  bool cost = false;  // of operators or the consumer: it is in the cost of a row, too
};

Change CostOf(const World& world, size_t s, size_t p, double factor) {
  const Part& part = world.stations[s].parts[p];
  Change change{fmt::format("{} x{:.2f}", part.name, factor),
                [s, p, factor](World* w) {
                  Part& changed = w->stations[s].parts[p];
                  changed.cpu_s *= factor;
                  changed.blocked_s *= factor;
                  const bool device =
                      changed.shared >= 0 && w->shared[static_cast<size_t>(changed.shared)].device;
                  if (device) return;  // the device's, not its
                  changed.held_cpu_s *= factor;
                  changed.held_blocked_s *= factor;
                },
                {{AttributedTo::kOperator, part.name}},
                true};
  return change;
}

Change SlowerShared(const World& world, size_t r, double factor) {
  const SharedResource& shared = world.shared[r];
  Change change{fmt::format("{} x{:.2f}", shared.name, factor),
                [r, factor](World* w) { w->shared[r].slow *= factor; },
                {},
                false};
  if (shared.device) change.rows.insert({AttributedTo::kDevice, shared.name});
  // A critical section that takes longer is its holders' cost.
  for (const Station& station : world.stations) {
    for (const Part& part : station.parts) {
      if (part.shared == static_cast<int>(r)) {
        change.rows.insert({AttributedTo::kOperator, part.name});
      }
    }
  }
  return change;
}

Change Threads(const World& world, size_t s, int threads) {
  const Station& station = world.stations[s];
  return {fmt::format("{} {}to{} threads", station.name, station.threads, threads),
          [s, threads](World* w) { w->stations[s].threads = threads; },
          {{AttributedTo::kThreads, station.name}},
          false};
}

double DrawFactor(Dice* dice) {
  return dice->Chance(0.5) ? dice->Uniform(0.5, 0.85) : 1 / dice->Uniform(0.5, 0.85);
}

Change DrawChange(const World& world, Dice* dice) {
  const auto below = [&](size_t limit) {
    return static_cast<size_t>(dice->Below(static_cast<int>(limit)));
  };
  const double factor = DrawFactor(dice);
  const size_t s = below(world.stations.size());
  const Station& station = world.stations[s];
  switch (dice->Below(10)) {
    case 0:
      return {fmt::format("consumer x{:.2f}", factor),
              [factor](World* w) { w->consumer_s *= factor; },
              {{AttributedTo::kConsumer, "consumer"}},
              true};
    case 1:
    case 2:
      if (!world.shared.empty()) return SlowerShared(world, below(world.shared.size()), factor);
      break;
    case 3:
    case 4:
      if (!station.sequential) {
        const int threads =
            dice->Chance(0.5) || station.threads == 1 ? 2 * station.threads : station.threads / 2;
        return Threads(world, s, threads);
      }
      break;
    default:
      break;
  }
  return CostOf(world, s, below(station.parts.size()), factor);
}

World WithChanges(const World& world, const std::vector<Change>& changes, uint64_t set) {
  World changed = world;
  for (size_t i = 0; i < changes.size(); ++i) {
    if ((set >> i & 1) != 0) changes[i].make(&changed);
  }
  return changed;
}

// The Shapley value of each change, from the logarithms of the rates that the World truly has with
// each set of changes.
std::vector<double> TrueValues(const World& world, const std::vector<Change>& changes,
                               uint64_t seed) {
  const size_t n = changes.size();
  std::vector<double> rates;
  for (uint64_t set = 0; set < uint64_t{1} << n; ++set) {
    const World changed = WithChanges(world, changes, set);
    double sum = 0;
    for (uint64_t i = 0; i < kPlays; ++i) sum += RateOf(changed, kTruthBatches, seed + 31 * i);
    rates.push_back(std::log(sum / kPlays));
  }
  std::vector<size_t> order(n);
  for (size_t i = 0; i < n; ++i) order[i] = i;
  std::vector<double> values(n, 0);
  double orders = 0;
  do {
    uint64_t set = 0;
    for (const size_t i : order) {
      const uint64_t with = set | uint64_t{1} << i;
      values[i] += rates[with] - rates[set];
      set = with;
    }
    ++orders;
  } while (std::next_permutation(order.begin(), order.end()));
  for (double& value : values) value /= orders;
  return values;
}

std::vector<analysis::RunView> RecordAll(const World& world, int level, uint64_t seed) {
  const double rate = RateOf(world, 200, seed + 5);
  Recording how;
  how.level = level;
  how.seconds = std::max(4.0, kRecordedBatches / std::max(rate, 1.0));
  std::vector<analysis::RunView> runs;
  for (size_t i = 0; i < kRuns; ++i) runs.push_back(Record(world, how, seed + 1000 * (i + 1)));
  return runs;
}

// The part of the change in CPU and blocked time together that those rows are said to be.
double CostPart(const Attribution& found, const Change& change) {
  const double a = found.total_a.cpu_s + found.total_a.blocked_s;
  const double b = found.total_b.cpu_s + found.total_b.blocked_s;
  if (std::abs(b / a - 1) < kCostMoved) return -1;
  double moved = 0;
  for (const AttributionRow& row : found.rows) {
    if (!row.a || !row.b || !change.rows.contains({row.to, row.name})) continue;
    moved += row.b->cpu_s + row.b->blocked_s - row.a->cpu_s - row.a->blocked_s;
  }
  return moved / (b - a);
}

}  // namespace

std::vector<AttributeTrial> TryAttributing(uint64_t seed) {
  const Planted planted = Generate(seed);
  Dice dice(seed, 66);
  std::vector<Change> changes;
  const size_t wanted = dice.Chance(0.7) ? 1 : 2 + static_cast<size_t>(dice.Below(2));
  // Most parts of a pipeline do not limit it: two of three changes are wanted to move the rate.
  const bool moving = dice.Chance(0.67);
  const double before = std::log(RateOf(planted.world, kTriedBatches, seed + 1));
  std::set<std::pair<AttributedTo, std::string>> rows;
  for (int attempt = 0; changes.size() < wanted && attempt < 50; ++attempt) {
    Change change = DrawChange(planted.world, &dice);
    const bool taken = std::any_of(change.rows.begin(), change.rows.end(),
                                   [&](const auto& row) { return rows.contains(row); });
    if (taken) continue;
    World alone = planted.world;
    change.make(&alone);
    const double moved = std::log(RateOf(alone, kTriedBatches, seed + 1)) - before;
    if (moving && attempt < kTries && std::abs(moved) < kRateMoved) continue;
    rows.insert(change.rows.begin(), change.rows.end());
    changes.push_back(std::move(change));
  }
  const World changed = WithChanges(planted.world, changes, ~uint64_t{0});
  const std::vector<analysis::RunView> a = RecordAll(planted.world, planted.level, seed);
  const std::vector<analysis::RunView> b = RecordAll(changed, planted.level, seed + 500);
  const Attribution found = analysis::Attribute(a, b);
  const std::vector<double> truths = TrueValues(planted.world, changes, seed + kTruthSeed);
  double sum = 0, stranger = 0;
  for (const AttributionRow& row : found.rows) {
    sum += row.throughput.value;
    if (rows.contains({row.to, row.name}) || row.to == AttributedTo::kUnexplained) continue;
    if (row.told && std::abs(row.throughput.value) > std::abs(stranger)) {
      stranger = row.throughput.value;
    }
  }
  std::vector<AttributeTrial> trials;
  for (size_t i = 0; i < changes.size(); ++i) {
    AttributeTrial trial;
    trial.seed = seed;
    trial.kind = planted.kind;
    trial.change = changes[i].text;
    trial.changes = static_cast<int>(changes.size());
    trial.truth = truths[i];
    trial.measured = found.log_ratio.value;
    for (const AttributionRow& row : found.rows) {
      if (!changes[i].rows.contains({row.to, row.name})) continue;
      trial.found += row.throughput.value;
      trial.low += row.throughput.interval.low;
      trial.high += row.throughput.interval.high;
    }
    trial.off = std::abs(sum - found.log_ratio.value);
    if (changes[i].cost && changes.size() == 1) trial.cost = CostPart(found, changes[i]);
    trial.stranger = stranger;
    trials.push_back(trial);
  }
  return trials;
}

}  // namespace headrace::validation
