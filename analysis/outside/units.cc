#include "analysis/outside/units.h"

#include <algorithm>

namespace headrace::analysis {

const char* UnitRoleName(UnitRole role) {
  constexpr const char* kNames[] = {"consumer", "producer", "idle", "launcher"};
  return kNames[static_cast<int>(role)];
}

const char* OutsideLimitName(OutsideLimit limit) {
  constexpr const char* kNames[] = {"producers", "cores",       "storage", "network",
                                    "lock",      "interpreter", "sleep",   "consumer",
                                    "pauses",    "own work",    "alone",   "none"};
  return kNames[static_cast<int>(limit)];
}

std::optional<double> Outside::OwnWork() const {
  if (!python || steady_s <= 0) return std::nullopt;
  // Stacks are of the whole run, in which the steady part has nearly all that a loader does.
  return python->loads_s / std::max(steady_s, python->loads_s + python->waits_s);
}

}  // namespace headrace::analysis
