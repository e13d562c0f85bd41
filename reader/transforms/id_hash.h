// The hash of the open reference implementation of SigridHash (TorchArrow on folly): an integer mix
// of each id, then a 128-to-64-bit mix with what comes before it. NGram and Cartesian combine ids
// with the same two functions.
#pragma once
#include <cstdint>

#include "reader/transforms/floor_modulus.h"
#include "reader/transforms/simd.h"

namespace headrace::reader {

// Thomas Wang's 64-bit integer mix.
inline uint64_t MixId(uint64_t key) {
  key = ~key + (key << 21);
  key ^= key >> 24;
  key += (key << 3) + (key << 8);
  key ^= key >> 14;
  key += (key << 2) + (key << 4);
  key ^= key >> 28;
  return key + (key << 31);
}

constexpr uint64_t kCombineMultiplier = 0x9ddfea08eb382d69u;

// CityHash's Hash128to64, Murmur-inspired.
inline uint64_t CombineHashes(uint64_t upper, uint64_t lower) {
  uint64_t a = (lower ^ upper) * kCombineMultiplier;
  a ^= a >> 47;
  uint64_t b = (upper ^ a) * kCombineMultiplier;
  b ^= b >> 47;
  return b * kCombineMultiplier;
}

#if defined(HR_X86)

HR_AVX2 HR_INLINE __m256i MixId(__m256i k) {
  const __m256i ones = _mm256_set1_epi64x(-1);
  k = _mm256_add_epi64(_mm256_xor_si256(k, ones), _mm256_slli_epi64(k, 21));
  k = _mm256_xor_si256(k, _mm256_srli_epi64(k, 24));
  k = _mm256_add_epi64(_mm256_add_epi64(k, _mm256_slli_epi64(k, 3)), _mm256_slli_epi64(k, 8));
  k = _mm256_xor_si256(k, _mm256_srli_epi64(k, 14));
  k = _mm256_add_epi64(_mm256_add_epi64(k, _mm256_slli_epi64(k, 2)), _mm256_slli_epi64(k, 4));
  k = _mm256_xor_si256(k, _mm256_srli_epi64(k, 28));
  return _mm256_add_epi64(k, _mm256_slli_epi64(k, 31));
}

HR_AVX2 HR_INLINE __m256i CombineHashes(__m256i upper, __m256i lower) {
  const __m256i multiplier = _mm256_set1_epi64x(static_cast<int64_t>(kCombineMultiplier));
  __m256i a = MultiplyLow(_mm256_xor_si256(lower, upper), multiplier);
  a = _mm256_xor_si256(a, _mm256_srli_epi64(a, 47));
  __m256i b = MultiplyLow(_mm256_xor_si256(upper, a), multiplier);
  b = _mm256_xor_si256(b, _mm256_srli_epi64(b, 47));
  return MultiplyLow(b, multiplier);
}

HR_AVX512 HR_INLINE __m512i MixId(__m512i k) {
  const __m512i ones = _mm512_set1_epi64(-1);
  k = _mm512_add_epi64(_mm512_sub_epi64(ones, k), _mm512_slli_epi64(k, 21));
  k = _mm512_xor_si512(k, _mm512_srli_epi64(k, 24));
  k = _mm512_add_epi64(_mm512_add_epi64(k, _mm512_slli_epi64(k, 3)), _mm512_slli_epi64(k, 8));
  k = _mm512_xor_si512(k, _mm512_srli_epi64(k, 14));
  k = _mm512_add_epi64(_mm512_add_epi64(k, _mm512_slli_epi64(k, 2)), _mm512_slli_epi64(k, 4));
  k = _mm512_xor_si512(k, _mm512_srli_epi64(k, 28));
  return _mm512_add_epi64(k, _mm512_slli_epi64(k, 31));
}

HR_AVX512 HR_INLINE __m512i CombineHashes(__m512i upper, __m512i lower) {
  const __m512i multiplier = _mm512_set1_epi64(static_cast<int64_t>(kCombineMultiplier));
  __m512i a = _mm512_mullo_epi64(_mm512_xor_si512(lower, upper), multiplier);
  a = _mm512_xor_si512(a, _mm512_srli_epi64(a, 47));
  __m512i b = _mm512_mullo_epi64(_mm512_xor_si512(upper, a), multiplier);
  b = _mm512_xor_si512(b, _mm512_srli_epi64(b, 47));
  return _mm512_mullo_epi64(b, multiplier);
}

#endif

}  // namespace headrace::reader
