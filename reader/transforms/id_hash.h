// The hash of the open reference implementation of SigridHash (TorchArrow on folly): an integer mix
// of each id, then a 128-to-64-bit mix with what comes before it. And the cheaper one of NGram and
// Cartesian, whose ids are hashed by SigridHash afterwards.
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

// Several ids as one: (..(x1 k + x2) k ..) + xn, then mixed. With k = 2^64 / golden ratio the sums
// of two different pairs of ids below 2^31 differ, as multiples of k keep further apart than that.
constexpr uint64_t kFoldMultiplier = 0x9e3779b97f4a7c15u;
constexpr uint64_t kFinishMultipliers[] = {0xff51afd7ed558ccdu, 0xc4ceb9fe1a85ec53u};

inline uint64_t FoldId(uint64_t folded, uint64_t id) { return folded * kFoldMultiplier + id; }

// MurmurHash3's fmix64, a bijection.
inline uint64_t FinishFold(uint64_t x) {
  for (const uint64_t multiplier : kFinishMultipliers) x = (x ^ (x >> 33)) * multiplier;
  return x ^ (x >> 33);
}

#if defined(HR_X86)

HR_AVX2 HR_INLINE __m256i FoldId(__m256i folded, __m256i id) {
  const __m256i multiplier = _mm256_set1_epi64x(static_cast<int64_t>(kFoldMultiplier));
  return _mm256_add_epi64(MultiplyLow(folded, multiplier), id);
}

HR_AVX2 HR_INLINE __m256i FinishFold(__m256i x) {
  for (const uint64_t multiplier : kFinishMultipliers)
    x = MultiplyLow(_mm256_xor_si256(x, _mm256_srli_epi64(x, 33)),
                    _mm256_set1_epi64x(static_cast<int64_t>(multiplier)));
  return _mm256_xor_si256(x, _mm256_srli_epi64(x, 33));
}

HR_AVX512 HR_INLINE __m512i FoldId(__m512i folded, __m512i id) {
  const __m512i multiplier = _mm512_set1_epi64(static_cast<int64_t>(kFoldMultiplier));
  return _mm512_add_epi64(_mm512_mullo_epi64(folded, multiplier), id);
}

HR_AVX512 HR_INLINE __m512i FinishFold(__m512i x) {
  for (const uint64_t multiplier : kFinishMultipliers)
    x = _mm512_mullo_epi64(XorShift<33>(x), _mm512_set1_epi64(static_cast<int64_t>(multiplier)));
  return XorShift<33>(x);
}

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
  a = XorShift<47>(a);
  __m512i b = _mm512_mullo_epi64(_mm512_xor_si512(upper, a), multiplier);
  return _mm512_mullo_epi64(XorShift<47>(b), multiplier);
}

#endif

}  // namespace headrace::reader
