// Clamp: limits each value of a dense feature to [low, high]; NaN stays NaN.
// Shape: float[rows] -> float[rows], in place.  Cost: one load and store per value, memory-bound.
// Source: std::clamp.
#include "reader/transforms/simd.h"
#include "reader/transforms/transform.h"

namespace headrace::reader {
namespace {

struct Clamp final : DenseTransform {
  explicit Clamp(const Params& params) : low(params.Float("low")), high(params.Float("high")) {
    params.Require(low <= high, "low", "not exceed 'high'");
  }

  void Reference(std::span<float> values) const override {
    for (float& x : values) x = x < low ? low : (x > high ? high : x);
  }

  void Apply(std::span<float> values, InstructionSet set) const override {
#if defined(HR_X86)
    if (set == InstructionSet::kAvx512) return Avx512(values);
    if (set == InstructionSet::kAvx2) return Reference(values.subspan(Avx2(values)));
#endif
    (void)set;
    Reference(values);
  }

#if defined(HR_X86)
  // min and max return their second operand for NaN and for zeros of both signs: the value stays.
  HR_AVX512 HR_INLINE __m512 One(__m512 x) const {
    return _mm512_min_ps(_mm512_set1_ps(high), _mm512_max_ps(_mm512_set1_ps(low), x));
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

  HR_AVX2 size_t Avx2(std::span<float> values) const {
    const __m256 lows = _mm256_set1_ps(low), highs = _mm256_set1_ps(high);
    size_t i = 0;
    for (; i + 8 <= values.size(); i += 8) {
      const __m256 x = _mm256_loadu_ps(&values[i]);
      _mm256_storeu_ps(&values[i], _mm256_min_ps(highs, _mm256_max_ps(lows, x)));
    }
    return i;
  }
#endif

  float low, high;
};

HR_TRANSFORM("clamp", Clamp,
             {.summary = "Limits each value to [low, high].",
              .semantics = "`std::clamp`; NaN stays NaN.",
              .cost = "per value, memory-bound",
              .inputs = {InputKind::kDense},
              .max_inputs = 1,
              .output = OutputKind::kDense,
              .params = {{"low", "real", "", "lower limit"},
                         {"high", "real", "", "upper limit, >= low"}},
              .examples = {{"low=0 high=1", "-1 0.5 2 nan - inf -inf", "0 0.5 1 nan - 1 0"},
                           {"low=1 high=2", "0 - 3", "1 - 2"}},
              .make = nullptr});

}  // namespace
}  // namespace headrace::reader
