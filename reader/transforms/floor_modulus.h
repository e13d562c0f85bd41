// FloorModulus: x mod d in [0, d) for signed 64-bit x, without division.
//
// For 0 <= x < 2^63 and d >= 2, floor(x / d) = high64(m * x) >> shift with m = floor(2^(64 + shift)
// / d) + 1 (Granlund and Montgomery, "Division by invariant integers using multiplication", PLDI
// 1994). For negative x, floor(x / d) = ~floor(~x / d).
//
// With 52-bit multiplications and 2^12 < d <= 2^49 the quotient need not be exact. Let v = x +
// 2^63, which is not negative, and q = floor(floor(v / 2^12) floor(2^64 / d) / 2^52). Rounding down
// three times loses less than 3, so v - q d < 3 d. Adding (-2^63) mod d takes the 2^63 back: the
// sum is congruent to x and below 4 d < 2^52. So its low 52 bits, all that such a multiplication
// gives, are the whole of it, and subtracting 2 d and d where it stays positive ends the division.
#pragma once
#include <cstdint>

#include "reader/transforms/simd.h"

namespace headrace::reader {

struct FloorModulus {
  // divisor >= 1.
  explicit FloorModulus(int64_t divisor_) : divisor(divisor_) {
    if (divisor < 2) return;  // everything is 0 modulo 1: multiplier 0 marks it
    const auto d = static_cast<uint64_t>(divisor);
    shift = 63 - __builtin_clzll(d - 1);
    multiplier = static_cast<uint64_t>((static_cast<unsigned __int128>(1) << (64 + shift)) / d) + 1;
    if (divisor <= (1 << 12) || divisor > int64_t{1} << 49) return;
    fits_52_bits = true;
    reciprocal = static_cast<int64_t>((static_cast<unsigned __int128>(1) << 64) / d);
    bias = static_cast<int64_t>((d - (uint64_t{1} << 63) % d) % d);
  }

  int64_t operator()(int64_t x) const {
    if (divisor < 2) return 0;
    const int64_t sign = x >> 63;
    const auto magnitude = static_cast<uint64_t>(sign ^ x);
    const auto high =
        static_cast<uint64_t>((static_cast<unsigned __int128>(multiplier) * magnitude) >> 64);
    const uint64_t quotient = static_cast<uint64_t>(sign) ^ (high >> shift);
    return static_cast<int64_t>(static_cast<uint64_t>(x) -
                                quotient * static_cast<uint64_t>(divisor));
  }

#if defined(HR_X86)
  HR_AVX2 HR_INLINE __m256i Avx2(__m256i x) const;
  HR_AVX512 HR_INLINE __m512i Avx512(__m512i x) const;
  // Needs fits_52_bits.
  HR_AVX512_IFMA HR_INLINE __m512i Avx512Ifma(__m512i x) const;
#endif

  int64_t divisor;
  uint64_t multiplier = 0;
  int shift = 0;
  bool fits_52_bits = false;
  int64_t reciprocal = 0, bias = 0;  // floor(2^64 / d) and (-2^63) mod d
};

#if defined(HR_X86)

// Low 64 bits of a * b: AVX2 has no such multiplication.
HR_AVX2 HR_INLINE __m256i MultiplyLow(__m256i a, __m256i b) {
  const __m256i cross = _mm256_add_epi64(_mm256_mul_epu32(_mm256_srli_epi64(a, 32), b),
                                         _mm256_mul_epu32(a, _mm256_srli_epi64(b, 32)));
  return _mm256_add_epi64(_mm256_mul_epu32(a, b), _mm256_slli_epi64(cross, 32));
}

// High 64 bits of the unsigned product a * b, from four 32-bit products.
HR_AVX2 HR_INLINE __m256i MultiplyHigh(__m256i a, __m256i b) {
  const __m256i mask = _mm256_set1_epi64x(0xffffffff);
  const __m256i a_high = _mm256_srli_epi64(a, 32), b_high = _mm256_srli_epi64(b, 32);
  const __m256i low = _mm256_mul_epu32(a, b), low_high = _mm256_mul_epu32(a, b_high);
  const __m256i high_low = _mm256_mul_epu32(a_high, b), high = _mm256_mul_epu32(a_high, b_high);
  const __m256i carry = _mm256_add_epi64(high_low, _mm256_srli_epi64(low, 32));
  const __m256i middle = _mm256_add_epi64(low_high, _mm256_and_si256(carry, mask));
  return _mm256_add_epi64(_mm256_add_epi64(high, _mm256_srli_epi64(carry, 32)),
                          _mm256_srli_epi64(middle, 32));
}

HR_AVX512 HR_INLINE __m512i MultiplyHigh(__m512i a, __m512i b) {
  const __m512i mask = _mm512_set1_epi64(0xffffffff);
  const __m512i a_high = _mm512_srli_epi64(a, 32), b_high = _mm512_srli_epi64(b, 32);
  const __m512i low = _mm512_mul_epu32(a, b), low_high = _mm512_mul_epu32(a, b_high);
  const __m512i high_low = _mm512_mul_epu32(a_high, b), high = _mm512_mul_epu32(a_high, b_high);
  const __m512i carry = _mm512_add_epi64(high_low, _mm512_srli_epi64(low, 32));
  const __m512i middle = _mm512_add_epi64(low_high, _mm512_and_si512(carry, mask));
  return _mm512_add_epi64(_mm512_add_epi64(high, _mm512_srli_epi64(carry, 32)),
                          _mm512_srli_epi64(middle, 32));
}

// Both are for divisor >= 2.
inline __m256i FloorModulus::Avx2(__m256i x) const {
  const __m256i sign = _mm256_cmpgt_epi64(_mm256_setzero_si256(), x);
  const __m256i high =
      MultiplyHigh(_mm256_set1_epi64x(static_cast<int64_t>(multiplier)), _mm256_xor_si256(sign, x));
  const __m256i quotient = _mm256_xor_si256(sign, _mm256_srl_epi64(high, _mm_cvtsi32_si128(shift)));
  return _mm256_sub_epi64(x, MultiplyLow(quotient, _mm256_set1_epi64x(divisor)));
}

inline __m512i FloorModulus::Avx512(__m512i x) const {
  const __m512i sign = _mm512_srai_epi64(x, 63);
  const __m512i high =
      MultiplyHigh(_mm512_set1_epi64(static_cast<int64_t>(multiplier)), _mm512_xor_si512(sign, x));
  const __m512i quotient = _mm512_xor_si512(sign, _mm512_srl_epi64(high, _mm_cvtsi32_si128(shift)));
  return _mm512_sub_epi64(x, _mm512_mullo_epi64(quotient, _mm512_set1_epi64(divisor)));
}

inline __m512i FloorModulus::Avx512Ifma(__m512i x) const {
  const __m512i once = _mm512_set1_epi64(divisor), twice = _mm512_set1_epi64(2 * divisor);
  const __m512i from_zero = _mm512_xor_si512(x, _mm512_set1_epi64(INT64_MIN));  // v
  // The multiplication reads the low 52 bits only: a rotation by 12 is as good as a shift.
  const __m512i quotient = _mm512_madd52hi_epu64(_mm512_setzero_si512(), RotateRight<12>(from_zero),
                                                 _mm512_set1_epi64(reciprocal));
  __m512i rest = _mm512_madd52lo_epu64(_mm512_add_epi64(x, _mm512_set1_epi64(bias)), quotient,
                                       _mm512_set1_epi64((int64_t{1} << 52) - divisor));
  rest = _mm512_and_si512(rest, _mm512_set1_epi64((int64_t{1} << 52) - 1));
  rest = _mm512_mask_sub_epi64(rest, _mm512_cmpge_epu64_mask(rest, twice), rest, twice);
  return _mm512_mask_sub_epi64(rest, _mm512_cmpge_epu64_mask(rest, once), rest, once);
}

#endif

}  // namespace headrace::reader
