// Numbers in JSON, which has no infinity and no "unknown".
#pragma once
#include <nlohmann/json_fwd.hpp>
#include <optional>

namespace headrace::dashboards {

// `value` as a number; null where it is unknown or not finite.
nlohmann::ordered_json NumberOrNull(const std::optional<double>& value);

}  // namespace headrace::dashboards
