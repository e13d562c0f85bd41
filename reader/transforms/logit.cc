// Logit: log(p / (1 - p)) of a value limited to [epsilon, 1 - epsilon]; NaN stays NaN.
// Shape: float[rows] -> float[rows], in place.  Cost: one division and one logarithm per value,
// compute-bound. The quotient is the single-precision one in Reference and Apply alike; Apply's
// logarithm of it is within MaxUlps of the correctly rounded one.
#include <cmath>

#include "reader/transforms/simd.h"
#include "reader/transforms/transform.h"
#include "reader/transforms/vector_math.h"

namespace headrace::reader {
namespace {

struct Logit final : DenseTransform {
  explicit Logit(const Params& params) : low(params.Float("epsilon", 1e-6f)), high(1.0f - low) {
    params.Require(low >= 1e-7f && low < 0.5f, "epsilon", "be at least 1e-7 and below 0.5");
  }

  void Reference(std::span<float> values) const override {
    for (float& x : values) {
      const float p = x < low ? low : (x > high ? high : x);
      const float odds = p / (1.0f - p);
      x = static_cast<float>(std::log(static_cast<double>(odds)));
    }
  }

  uint32_t MaxUlps() const override { return 2; }

  void Apply(std::span<float> values, InstructionSet set) const override {
#if defined(HR_X86)
    if (set == InstructionSet::kAvx512) return Avx512(values);
    if (set == InstructionSet::kAvx2) return Avx2(values);
#endif
    (void)set;
    Reference(values);
  }

#if defined(HR_X86)
  HR_AVX512 HR_INLINE __m512 One(__m512 x) const {
    const __m512 p = _mm512_min_ps(_mm512_set1_ps(high), _mm512_max_ps(_mm512_set1_ps(low), x));
    __m512 log_high, log_low;
    LogParts(_mm512_div_ps(p, _mm512_sub_ps(_mm512_set1_ps(1), p)), &log_high, &log_low);
    return _mm512_add_ps(log_high, log_low);
  }

  HR_AVX512 HR_INLINE void Some(float* values, size_t n) const {
    const __mmask16 lanes = FirstLanes16(n);
    _mm512_mask_storeu_ps(values, lanes, One(_mm512_maskz_loadu_ps(lanes, values)));
  }

  HR_AVX512 void Avx512(std::span<float> values) const {
    const size_t n = values.size();
    size_t i = UnalignedHead(values.data(), n);
    if (i > 0) Some(values.data(), i);
    for (; i + 16 <= n; i += 16) _mm512_storeu_ps(&values[i], One(_mm512_loadu_ps(&values[i])));
    if (i < n) Some(&values[i], n - i);
  }

  HR_AVX2 HR_INLINE __m256 One(__m256 x) const {
    const __m256 p = _mm256_min_ps(_mm256_set1_ps(high), _mm256_max_ps(_mm256_set1_ps(low), x));
    __m256 log_high, log_low;
    LogParts(_mm256_div_ps(p, _mm256_sub_ps(_mm256_set1_ps(1), p)), &log_high, &log_low);
    const __m256 nan = _mm256_cmp_ps(x, x, _CMP_UNORD_Q);
    return _mm256_blendv_ps(_mm256_add_ps(log_high, log_low), x, nan);
  }

  HR_AVX2 void Avx2(std::span<float> values) const {
    const size_t n = values.size();
    size_t i = 0;
    for (; i + 8 <= n; i += 8) _mm256_storeu_ps(&values[i], One(_mm256_loadu_ps(&values[i])));
    if (i == n) return;
    const __m256i lanes = FirstLanesMask8(n - i);
    _mm256_maskstore_ps(&values[i], lanes, One(_mm256_maskload_ps(&values[i], lanes)));
  }
#endif

  float low, high;
};

HR_TRANSFORM("logit", Logit,
             {.summary = "Gives log(p / (1 - p)) of a value limited to [epsilon, 1 - epsilon].",
              .semantics = "NaN stays NaN. Vector kernels are within 2 ulp of the reference, the "
                           "logarithm of the single-precision quotient.",
              .cost = "per value, compute-bound (a division and a logarithm)",
              .inputs = {InputKind::kDense},
              .max_inputs = 1,
              .output = OutputKind::kDense,
              .params = {{"epsilon", "real", "1e-6", "distance kept from 0 and 1; 1e-7 to 0.5"}},
              .examples = {{"", "0.5 nan -", "0 nan -"},
                           {"epsilon=0.25", "0 0.75 1 -inf",
                            "-1.0986123 1.0986123 1.0986123 "
                            "-1.0986123"}},
              .make = nullptr});

}  // namespace
}  // namespace headrace::reader
