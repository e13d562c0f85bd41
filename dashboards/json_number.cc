#include "dashboards/json_number.h"

#include <cmath>
#include <nlohmann/json.hpp>

namespace headrace::dashboards {

nlohmann::ordered_json NumberOrNull(const std::optional<double>& value) {
  if (!value || !std::isfinite(*value)) return nullptr;
  return *value;
}

}  // namespace headrace::dashboards
