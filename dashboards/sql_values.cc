#include "dashboards/sql_values.h"

#include <fmt/format.h>

#include <cmath>

#include "dashboards/export/escape.h"

namespace headrace::dashboards {

using collectors::SqlValue;

std::optional<int64_t> WholeOf(const SqlValue& value) {
  if (const auto* whole = std::get_if<int64_t>(&value)) return *whole;
  const auto* real = std::get_if<double>(&value);
  if (real == nullptr || !(std::abs(*real) < 0x1p63)) return std::nullopt;
  return static_cast<int64_t>(*real);
}

std::optional<double> NumberOf(const SqlValue& value) {
  if (const auto* whole = std::get_if<int64_t>(&value)) return static_cast<double>(*whole);
  const auto* real = std::get_if<double>(&value);
  if (real == nullptr || !std::isfinite(*real)) return std::nullopt;
  return *real;
}

std::string TextOf(const SqlValue& value) {
  if (const auto* text = std::get_if<std::string>(&value)) return *text;
  if (const auto* whole = std::get_if<int64_t>(&value)) return fmt::format("{}", *whole);
  if (const auto* real = std::get_if<double>(&value)) return fmt::format("{}", *real);
  return "";
}

std::string JsonValue(const SqlValue& value) {
  if (const auto* text = std::get_if<std::string>(&value)) return JsonString(*text);
  return NumberOf(value) ? TextOf(value) : "null";
}

int64_t EndOfWindow(int64_t start_ns, int64_t duration_ns) {
  int64_t end_ns = 0;
  if (__builtin_add_overflow(start_ns, duration_ns, &end_ns)) {
    return duration_ns > 0 ? INT64_MAX : INT64_MIN;
  }
  return end_ns;
}

}  // namespace headrace::dashboards
