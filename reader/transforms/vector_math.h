// Logarithm and exponential of vectors of floats, for kernels with a stated error bound.
//
// The logarithm comes as an unevaluated sum of two floats, so that what is multiplied and
// exponentiated afterwards keeps its accuracy. Polynomials and the split of ln 2 are those of the
// Cephes library (S. L. Moshier, logf and expf).
#pragma once

#include "reader/transforms/simd.h"

namespace headrace::reader {

constexpr float kLn2High = 0.693359375f;  // nine bits: a small integer times it is exact
constexpr float kLn2Low = -2.12194440e-4f;
constexpr float kLog2E = 1.44269504088896341f;
constexpr float kSqrt2 = 1.41421356237309505f;
constexpr float kLogPolynomial[] = {7.0376836292e-2f,  -1.1514610310e-1f, 1.1676998740e-1f,
                                    -1.2420140846e-1f, 1.4249322787e-1f,  -1.6668057665e-1f,
                                    2.0000714765e-1f,  -2.4999993993e-1f, 3.3333331174e-1f};
constexpr float kExpPolynomial[] = {1.9875691500e-4f, 1.3981999507e-3f, 8.3334519073e-3f,
                                    4.1665795894e-2f, 1.6666665459e-1f, 5.0000001201e-1f};
// exp(110) / 8 is infinite in single precision, and exp(-40) - 1 is -1.
constexpr float kMaxExponent = 110.0f, kMinExponent = -40.0f;

#if defined(HR_X86)

// log(x) = high + low for finite normal x > 0.
HR_AVX512 HR_INLINE void LogParts(__m512 x, __m512* high, __m512* low) {
  const __m512 one = _mm512_set1_ps(1);
  __m512 exponent = _mm512_getexp_ps(x);
  __m512 m = _mm512_getmant_ps(x, _MM_MANT_NORM_1_2, _MM_MANT_SIGN_src);
  const __mmask16 large = _mm512_cmp_ps_mask(m, _mm512_set1_ps(kSqrt2), _CMP_GT_OQ);
  exponent = _mm512_mask_add_ps(exponent, large, exponent, one);
  m = _mm512_mask_mul_ps(m, large, m, _mm512_set1_ps(0.5f));
  const __m512 t = _mm512_sub_ps(m, one), square = _mm512_mul_ps(t, t);
  __m512 p = _mm512_set1_ps(kLogPolynomial[0]);
  for (int i = 1; i < 9; ++i) p = _mm512_fmadd_ps(p, t, _mm512_set1_ps(kLogPolynomial[i]));
  p = _mm512_mul_ps(_mm512_mul_ps(p, t), square);
  p = _mm512_fmadd_ps(exponent, _mm512_set1_ps(kLn2Low), p);
  p = _mm512_fnmadd_ps(square, _mm512_set1_ps(0.5f), p);
  const __m512 a = _mm512_mul_ps(exponent, _mm512_set1_ps(kLn2High));
  const __m512 sum = _mm512_add_ps(a, t), b = _mm512_sub_ps(sum, a);
  const __m512 error = _mm512_add_ps(_mm512_sub_ps(a, _mm512_sub_ps(sum, b)), _mm512_sub_ps(t, b));
  *high = sum;
  *low = _mm512_add_ps(error, p);
}

// (exp(high + low) - 1) * factor for any high, |low| small. With high + low = n ln 2 + r it is
// 2^n (expm1(r) factor + (factor - 2^-n factor)): no cancellation, and no overflow before the last
// step.
HR_AVX512 HR_INLINE __m512 ScaledExpMinus1(__m512 high, __m512 low, __m512 factor) {
  high = _mm512_max_ps(_mm512_min_ps(high, _mm512_set1_ps(kMaxExponent)),
                       _mm512_set1_ps(kMinExponent));
  const __m512 n = _mm512_roundscale_ps(
      _mm512_mul_ps(_mm512_add_ps(high, low), _mm512_set1_ps(kLog2E)), _MM_FROUND_TO_NEAREST_INT);
  __m512 r = _mm512_fnmadd_ps(n, _mm512_set1_ps(kLn2High), high);
  r = _mm512_add_ps(_mm512_fnmadd_ps(n, _mm512_set1_ps(kLn2Low), r), low);
  __m512 p = _mm512_set1_ps(kExpPolynomial[0]);
  for (int i = 1; i < 6; ++i) p = _mm512_fmadd_ps(p, r, _mm512_set1_ps(kExpPolynomial[i]));
  p = _mm512_fmadd_ps(p, _mm512_mul_ps(r, r), r);
  const __m512 minus_n = _mm512_sub_ps(_mm512_setzero_ps(), n);
  const __m512 rest = _mm512_sub_ps(factor, _mm512_scalef_ps(factor, minus_n));
  return _mm512_scalef_ps(_mm512_fmadd_ps(p, factor, rest), n);
}

HR_AVX2 HR_INLINE void LogParts(__m256 x, __m256* high, __m256* low) {
  const __m256 one = _mm256_set1_ps(1);
  const __m256i bits = _mm256_castps_si256(x);
  __m256 exponent =
      _mm256_cvtepi32_ps(_mm256_sub_epi32(_mm256_srli_epi32(bits, 23), _mm256_set1_epi32(127)));
  __m256 m = _mm256_castsi256_ps(_mm256_or_si256(
      _mm256_and_si256(bits, _mm256_set1_epi32(0x7fffff)), _mm256_set1_epi32(0x3f800000)));
  const __m256 large = _mm256_cmp_ps(m, _mm256_set1_ps(kSqrt2), _CMP_GT_OQ);
  exponent = _mm256_add_ps(exponent, _mm256_and_ps(large, one));
  m = _mm256_blendv_ps(m, _mm256_mul_ps(m, _mm256_set1_ps(0.5f)), large);
  const __m256 t = _mm256_sub_ps(m, one), square = _mm256_mul_ps(t, t);
  __m256 p = _mm256_set1_ps(kLogPolynomial[0]);
  for (int i = 1; i < 9; ++i) p = _mm256_fmadd_ps(p, t, _mm256_set1_ps(kLogPolynomial[i]));
  p = _mm256_mul_ps(_mm256_mul_ps(p, t), square);
  p = _mm256_fmadd_ps(exponent, _mm256_set1_ps(kLn2Low), p);
  p = _mm256_fnmadd_ps(square, _mm256_set1_ps(0.5f), p);
  const __m256 a = _mm256_mul_ps(exponent, _mm256_set1_ps(kLn2High));
  const __m256 sum = _mm256_add_ps(a, t), b = _mm256_sub_ps(sum, a);
  const __m256 error = _mm256_add_ps(_mm256_sub_ps(a, _mm256_sub_ps(sum, b)), _mm256_sub_ps(t, b));
  *high = sum;
  *low = _mm256_add_ps(error, p);
}

// x * 2^n for |n| < 250, in two factors that are normal numbers.
HR_AVX2 HR_INLINE __m256 ScaleByPower(__m256 x, __m256i n) {
  const __m256i half = _mm256_srai_epi32(n, 1), bias = _mm256_set1_epi32(127);
  const __m256i first = _mm256_slli_epi32(_mm256_add_epi32(half, bias), 23);
  const __m256i second = _mm256_slli_epi32(_mm256_add_epi32(_mm256_sub_epi32(n, half), bias), 23);
  return _mm256_mul_ps(_mm256_mul_ps(x, _mm256_castsi256_ps(first)), _mm256_castsi256_ps(second));
}

HR_AVX2 HR_INLINE __m256 ScaledExpMinus1(__m256 high, __m256 low, __m256 factor) {
  high = _mm256_max_ps(_mm256_min_ps(high, _mm256_set1_ps(kMaxExponent)),
                       _mm256_set1_ps(kMinExponent));
  const __m256 n = _mm256_round_ps(_mm256_mul_ps(_mm256_add_ps(high, low), _mm256_set1_ps(kLog2E)),
                                   _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
  __m256 r = _mm256_fnmadd_ps(n, _mm256_set1_ps(kLn2High), high);
  r = _mm256_add_ps(_mm256_fnmadd_ps(n, _mm256_set1_ps(kLn2Low), r), low);
  __m256 p = _mm256_set1_ps(kExpPolynomial[0]);
  for (int i = 1; i < 6; ++i) p = _mm256_fmadd_ps(p, r, _mm256_set1_ps(kExpPolynomial[i]));
  p = _mm256_fmadd_ps(p, _mm256_mul_ps(r, r), r);
  const __m256i power = _mm256_cvtps_epi32(n);
  const __m256i minus_power = _mm256_sub_epi32(_mm256_setzero_si256(), power);
  const __m256 rest = _mm256_sub_ps(factor, ScaleByPower(factor, minus_power));
  return ScaleByPower(_mm256_fmadd_ps(p, factor, rest), power);
}

#endif

}  // namespace headrace::reader
