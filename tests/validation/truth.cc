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
  Truth truth;
  truth.rate = RateOf(world, batches, seed);
  const auto relieve = [&](const std::string& row, auto&& change) {
    World changed = world;
    change(&changed);
    truth.gains.push_back({row, RateOf(changed, batches, seed) / truth.rate - 1});
  };
  bool ordered = false;
  for (size_t s = 0; s < world.stations.size(); ++s) {
    relieve(world.stations[s].name,
            [&](World* w) { w->stations[s].threads += std::max(1, w->stations[s].threads / 4); });
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
