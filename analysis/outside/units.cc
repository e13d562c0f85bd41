#include "analysis/outside/units.h"

#include <algorithm>

#include "analysis/thresholds.h"

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

std::optional<double> Outside::OfSteady(double seconds) const {
  if (!python || steady_s <= 0 || python->seconds < kStacksSee * steady_s) return std::nullopt;
  // Stacks are of the whole run, of which the steady part has what a loader does.
  const double all_s =
      std::max(std::min(steady_s, python->seconds), python->loads_s + python->waits_s);
  return seconds / all_s;
}

std::optional<double> Outside::OwnWork() const {
  return python ? OfSteady(python->loads_s) : std::nullopt;
}

std::optional<double> Outside::InLoader() const {
  return python ? OfSteady(python->loads_s + python->waits_s) : std::nullopt;
}

}  // namespace headrace::analysis
