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

bool Outside::IsHeldBack() const {
  return !units.empty() && !core_budget.quota && units[0].shares.runnable > kReadyBesideFreeCores &&
         cores_free.value_or(0) > kAFreeCore;
}

std::optional<OwnTime> Outside::OwnTimes() const {
  if (!python || steady_s <= 0 || python->sampled_s < kStacksSee * steady_s ||
      python->samples_count < kFewestSamples) {
    return std::nullopt;
  }
  // Stacks are of the whole run, of which the steady part has what a loader does.
  const double in_loader_s = python->loads_s + python->waits_s;
  const double whole_s =
      python->is_loop_known ? python->seconds : std::min(steady_s, python->seconds);
  const double all_s = std::max({whole_s, in_loader_s, 1e-9});
  const double rest = 1 - in_loader_s / all_s;
  const double beside_s = std::max(python->step_s + python->unknown_s, 1e-9);
  OwnTime time;
  time.loads = python->loads_s / all_s;
  time.waits = python->waits_s / all_s;
  time.loads_by_name = python->loads_by_name_s / all_s;
  time.unknown = python->has_loader ? 0 : rest * python->unknown_s / beside_s;
  time.step = rest - time.unknown;
  time.step_by_name = python->has_loader ? 0 : rest * python->step_by_name_s / beside_s;
  return time;
}

std::optional<double> Outside::OwnWork() const {
  const std::optional<OwnTime> time = OwnTimes();
  return time ? std::optional(time->loads) : std::nullopt;
}

std::optional<double> Outside::InLoader() const {
  const std::optional<OwnTime> time = OwnTimes();
  return time ? std::optional(time->loads + time->waits) : std::nullopt;
}

}  // namespace headrace::analysis
