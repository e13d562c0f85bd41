// Lengths of time, in nanoseconds, for tests that make up recordings.
#pragma once
#include <cstdint>

namespace headrace::collectors {

inline constexpr int64_t kMs = 1'000'000, kSecond = 1'000'000'000;

}  // namespace headrace::collectors
