// The seed of a test with random input: printed, so that a failure can be repeated with
// HEADRACE_SEED=N.
#pragma once
#include <cinttypes>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <optional>
#include <random>

namespace headrace {

// HEADRACE_SEED, else `usual`, else another one each time.
inline uint64_t TestSeed(std::optional<uint64_t> usual = std::nullopt) {
  const char* text = std::getenv("HEADRACE_SEED");
  const uint64_t seed = text != nullptr ? std::strtoull(text, nullptr, 10)
                        : usual         ? *usual
                                        : std::random_device{}();
  std::printf("HEADRACE_SEED=%" PRIu64 "\n", seed);
  return seed;
}

}  // namespace headrace
