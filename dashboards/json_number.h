// Numbers in JSON, which has no infinity and no "unknown".
#pragma once
#include <nlohmann/json_fwd.hpp>
#include <optional>

#include "analysis/statistics/statistics.h"

namespace headrace::dashboards {

// `value` as a number; null where it is unknown or not finite.
nlohmann::ordered_json NumberOrNull(const std::optional<double>& value);
// `value` rounded to a whole number, for bytes; null where it is unknown.
nlohmann::ordered_json WholeOrNull(const std::optional<double>& value);
// {"low", "high", "level_ratio"}; an end that is not finite is null.
nlohmann::ordered_json IntervalJson(const analysis::Interval& interval, double level);

}  // namespace headrace::dashboards
