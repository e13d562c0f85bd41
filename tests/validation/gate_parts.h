// What gates are made of: shares and means of trials, held against a limit.
#pragma once
#include <fmt/format.h>

#include <string>
#include <utility>
#include <vector>

#include "tests/validation/gates.h"

namespace headrace::validation {

inline std::string Percent(double share) { return fmt::format("{:.1f} %", 100 * share); }

inline double Mean(const std::vector<double>& values) {
  double sum = 0;
  for (double value : values) sum += value;
  return values.empty() ? 0 : sum / static_cast<double>(values.size());
}

template <typename T, typename Use>
std::vector<double> Each(const std::vector<T>& trials, Use use) {
  std::vector<double> values;
  for (const T& trial : trials) values.push_back(use(trial));
  return values;
}

template <typename T, typename Keep>
std::vector<T> Only(const std::vector<T>& trials, Keep keep) {
  std::vector<T> kept;
  for (const T& trial : trials) {
    if (keep(trial)) kept.push_back(trial);
  }
  return kept;
}

inline Gate AtMost(std::string id, std::string what, double value, double limit, size_t trials) {
  return {std::move(id), std::move(what), "<= " + Percent(limit), value,
          limit,         false,           Percent(value),         trials};
}
inline Gate AtLeast(std::string id, std::string what, double value, double limit, size_t trials) {
  return {std::move(id),  std::move(what), ">= " + Percent(limit), value, limit, true,
          Percent(value), trials};
}

}  // namespace headrace::validation
