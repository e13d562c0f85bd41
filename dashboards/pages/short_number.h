// Numbers of series: four significant digits are more than a chart shows.
#pragma once
#include <nlohmann/json_fwd.hpp>
#include <optional>

namespace headrace::dashboards {

double FourDigits(double value);
// null where it is not known or not finite.
nlohmann::ordered_json ShortNumber(const std::optional<double>& value);

}  // namespace headrace::dashboards
