#include "tests/validation/truth.h"

#include <algorithm>
#include <cmath>

namespace headrace::validation {

bool Truth::Holds(const std::string& row) const {
  for (const Gain& gain : gains) {
    if (gain.row == row) return gain.gain >= gap() / 2;
  }
  return false;
}

Truth FindTruth(const World& world, int64_t batches, uint64_t seed) {
  constexpr uint64_t kPlays = 4;
  Truth truth;
  std::vector<double> rates;
  for (uint64_t play = 0; play < kPlays; ++play) {
    rates.push_back(RateOf(world, batches, seed + 31 * play));
    truth.rate += rates.back() / kPlays;
  }
  const auto relieve = [&](const std::string& row, auto&& change) {
    World changed = world;
    change(&changed);
    double sum = 0, squares = 0;
    for (uint64_t play = 0; play < kPlays; ++play) {
      const double gain = RateOf(changed, batches, seed + 31 * play) / rates[play] - 1;
      sum += gain;
      squares += gain * gain;
    }
    const double mean = sum / kPlays;
    const double variance = std::max(0.0, squares / kPlays - mean * mean) / (kPlays - 1);
    truth.gains.push_back({row, mean, std::sqrt(variance)});
  };
  bool ordered = false;
  for (size_t s = 0; s < world.stations.size(); ++s) {
    relieve(world.stations[s].name, [&](World* w) {
      Station& station = w->stations[s];
      if (!station.sequential) {
        station.threads += std::max(1, station.threads / 4);
        return;
      }
      for (Part& part : station.parts) {
        part.cpu_s *= 0.8;
        part.blocked_s *= 0.8;
        part.held_cpu_s *= 0.8;
        part.held_blocked_s *= 0.8;
      }
    });
    ordered = ordered || world.stations[s].ordered;
  }
  relieve("cores", [](World* w) { w->cores += std::max(1.0, std::round(w->cores / 4)); });
  relieve("consumer", [](World* w) { w->consumer_s *= 0.8; });
  for (size_t r = 0; r < world.shared.size(); ++r) {
    relieve(world.shared[r].name, [&](World* w) { w->shared[r].slow *= 0.8; });
  }
  if (ordered) {
    relieve("order", [](World* w) {
      for (Station& station : w->stations) {
        station.queue *= 4;
        station.window *= 4;
      }
    });
  }
  std::stable_sort(truth.gains.begin(), truth.gains.end(),
                   [](const Gain& a, const Gain& b) { return a.gain > b.gain; });
  return truth;
}

}  // namespace headrace::validation
