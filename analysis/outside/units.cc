#include "analysis/outside/units.h"

namespace headrace::analysis {

const char* UnitRoleName(UnitRole role) {
  constexpr const char* kNames[] = {"consumer", "producer", "idle", "launcher"};
  return kNames[static_cast<int>(role)];
}

const char* OutsideLimitName(OutsideLimit limit) {
  constexpr const char* kNames[] = {"producers",   "cores", "storage",  "network", "lock",
                                    "interpreter", "sleep", "consumer", "alone",   "none"};
  return kNames[static_cast<int>(limit)];
}

}  // namespace headrace::analysis
