// kInfinite: a rate, a capacity or a time without a bound.
#pragma once
#include <limits>

namespace headrace {

inline constexpr double kInfinite = std::numeric_limits<double>::infinity();

}  // namespace headrace
