// Whether a text begins with one of several others.
#pragma once
#include <algorithm>
#include <cstddef>
#include <iterator>
#include <string_view>

namespace headrace {

template <size_t kCount>
constexpr bool StartsWithAny(std::string_view text, const std::string_view (&beginnings)[kCount]) {
  return std::any_of(std::begin(beginnings), std::end(beginnings),
                     [&](std::string_view beginning) { return text.starts_with(beginning); });
}

}  // namespace headrace
