// The library's own source, compiled for AVX2: it is a header as well.
#if defined(__x86_64__)
#include <immintrin.h>

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <span>

#if defined(__clang__)
#pragma clang attribute push(__attribute__((target("avx2"))), apply_to = function)
#else
#pragma GCC target("avx2")
#endif
#define XXH_INLINE_ALL
#define XXH_VECTOR 2  // XXH_AVX2
#include <xxhash.h>

namespace headrace::reader {

uint64_t HashPartsAvx2(std::span<const std::span<const uint8_t>> parts, uint64_t seed) {
  if (parts.size() == 1) return XXH3_64bits_withSeed(parts[0].data(), parts[0].size(), seed);
  XXH3_state_t state = {};
  XXH3_64bits_reset_withSeed(&state, seed);
  for (const std::span<const uint8_t>& part : parts)
    XXH3_64bits_update(&state, part.data(), part.size());
  return XXH3_64bits_digest(&state);
}

}  // namespace headrace::reader
#if defined(__clang__)
#pragma clang attribute pop
#endif
#endif
