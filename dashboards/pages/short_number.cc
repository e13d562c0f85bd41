#include "dashboards/pages/short_number.h"

#include <cmath>
#include <nlohmann/json.hpp>

namespace headrace::dashboards {

double FourDigits(double value) {
  if (value == 0 || !std::isfinite(value)) return value;
  // Divided by a power of ten that is exact, so that the text is short.
  const int digits = 3 - static_cast<int>(std::floor(std::log10(std::abs(value))));
  if (digits < -15 || digits > 22) return value;
  const double power = std::pow(10.0, std::abs(digits));
  return digits >= 0 ? std::round(value * power) / power : std::round(value / power) * power;
}

nlohmann::ordered_json ShortNumber(const std::optional<double>& value) {
  if (!value || !std::isfinite(*value)) return nullptr;
  return FourDigits(*value);
}

}  // namespace headrace::dashboards
