// The fleet's page for programs.
#pragma once
#include <string>

#include "dashboards/fleet.h"

namespace headrace::dashboards {

// One object, "schema": "headrace.fleet/1", SI base units. What is not known is null, with its
// reason under KEY_unavailable; what does not limit is in "not_limited_by".
std::string FleetJson(const FleetPage& page);

}  // namespace headrace::dashboards
