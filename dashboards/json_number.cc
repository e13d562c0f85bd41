#include "dashboards/json_number.h"

#include <cmath>
#include <nlohmann/json.hpp>

namespace headrace::dashboards {

nlohmann::ordered_json NumberOrNull(const std::optional<double>& value) {
  if (!value || !std::isfinite(*value)) return nullptr;
  return *value;
}

nlohmann::ordered_json WholeOrNull(const std::optional<double>& value) {
  if (!value) return nullptr;
  return std::llround(*value);
}

nlohmann::ordered_json IntervalJson(const analysis::Interval& interval, double level) {
  return {{"low", NumberOrNull(interval.low)},
          {"high", NumberOrNull(interval.high)},
          {"level_ratio", level}};
}

}  // namespace headrace::dashboards
