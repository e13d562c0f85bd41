#include "tests/validation/exhaustive.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <iterator>
#include <utility>

namespace headrace::validation {

World With(const World& world, const Choice& choice) {
  World changed = world;
  for (size_t s = 0; s < changed.stations.size(); ++s) {
    changed.stations[s].threads = choice.threads[s];
    changed.stations[s].queue = choice.queues[s];
    if (choice.window && changed.stations[s].window > 0)
      changed.stations[s].window = *choice.window;
  }
  return changed;
}

Choice SettingsOf(const World& world) {
  Choice choice;
  for (const Station& station : world.stations) {
    choice.threads.push_back(station.threads);
    choice.queues.push_back(station.queue);
  }
  return choice;
}

std::string TextOf(const Choice& choice) {
  return fmt::format("{}/{}{}", fmt::join(choice.threads, ","), fmt::join(choice.queues, ","),
                     choice.window ? fmt::format("/{}", *choice.window) : "");
}

bool Fits(const World& world) { return MemoryOf(world) <= world.memory_bytes * (1 + 1e-9); }

double LongRate(const World& world, uint64_t seed) {
  double sum = 0;
  for (uint64_t i = 0; i < 3; ++i) sum += RateOf(world, kTruthBatches, seed + 31 * i);
  return sum / 3;
}

Best FindBest(const World& world, uint64_t seed) {
  constexpr int kThreads[] = {1, 2, 3, 4, 6, 8, 12, 16};
  constexpr size_t kFinal = 5;  // of the quickly tried, that are tried at length
  std::vector<std::pair<double, Choice>> grid;
  const Choice now = SettingsOf(world);
  std::vector<size_t> digits(world.stations.size(), 0);
  while (true) {
    for (int deep : {1, 4}) {
      Choice choice = now;
      bool valid = true;
      for (size_t s = 0; s < digits.size(); ++s) {
        choice.queues[s] *= deep;
        if (!world.stations[s].sequential) choice.threads[s] = kThreads[digits[s]];
        valid = valid && (!world.stations[s].sequential || digits[s] == 0);
      }
      const World changed = With(world, choice);
      if (valid && Fits(changed)) {
        grid.emplace_back(RateOf(changed, 250, seed + kTruthSeed), choice);
      }
    }
    size_t digit = 0;
    while (digit < digits.size() && ++digits[digit] == std::size(kThreads)) digits[digit++] = 0;
    if (digit == digits.size()) break;
  }
  std::sort(grid.begin(), grid.end(),
            [](const auto& a, const auto& b) { return a.first > b.first; });
  Best best{0, now};
  for (size_t i = 0; i < std::min(kFinal, grid.size()); ++i) {
    const double rate = LongRate(With(world, grid[i].second), seed + kTruthSeed);
    if (rate > best.rate) best = {rate, grid[i].second};
  }
  return best;
}

}  // namespace headrace::validation
