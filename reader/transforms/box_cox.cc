// BoxCox: the Box-Cox power transform, (v^lambda - 1) / lambda with v = max(x + shift, floor); the
// logarithm of v when lambda is 0. NaN stays NaN.
// Shape: float[rows] -> float[rows], in place.  Cost: a logarithm and an exponential per value,
// compute-bound. Reference computes in double precision; Apply in pairs of floats, within MaxUlps.
#include <cmath>
#include <limits>

#include "reader/transforms/simd.h"
#include "reader/transforms/transform.h"
#include "reader/transforms/vector_math.h"

namespace headrace::reader {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

struct BoxCox final : DenseTransform {
  explicit BoxCox(const Params& params)
      : lambda(params.Float("lambda")),
        shift(params.Float("shift", 0)),
        floor(params.Float("floor", 1e-6f)) {
    const float size = std::fabs(lambda);
    params.Require(lambda == 0 || (size >= 1e-6f && size <= 8), "lambda",
                   "be 0, or 1e-6 to 8 in size");
    params.Require(floor >= std::numeric_limits<float>::min(), "floor",
                   "be a positive normal number");
  }

  void Reference(std::span<float> values) const override {
    const double l = lambda;
    for (float& x : values) {
      float v = x + shift;
      v = v < floor ? floor : v;
      const double log = std::log(static_cast<double>(v));
      x = static_cast<float>(lambda == 0 ? log : std::expm1(l * log) / l);
    }
  }

  uint32_t MaxUlps() const override { return 4; }

  void Apply(std::span<float> values, InstructionSet set) const override {
#if defined(HR_X86)
    if (set == InstructionSet::kAvx512)
      return lambda == 0 ? Avx512<true>(values) : Avx512<false>(values);
    if (set == InstructionSet::kAvx2) return lambda == 0 ? Avx2<true>(values) : Avx2<false>(values);
#endif
    (void)set;
    Reference(values);
  }

#if defined(HR_X86)
  // What becomes of +infinity.
  float Limit() const { return lambda >= 0 ? kInfinity : -1 / lambda; }

  template <bool kLog>
  HR_AVX512 HR_INLINE __m512 One(__m512 x) const {
    const __m512 v = _mm512_max_ps(_mm512_set1_ps(floor), _mm512_add_ps(x, _mm512_set1_ps(shift)));
    __m512 high, low, result;
    LogParts(v, &high, &low);
    if constexpr (kLog) {
      result = _mm512_add_ps(high, low);
    } else {
      const __m512 l = _mm512_set1_ps(lambda), product = _mm512_mul_ps(l, high);
      const __m512 rest = _mm512_fmadd_ps(l, low, _mm512_fmsub_ps(l, high, product));
      result = ScaledExpMinus1(product, rest, _mm512_set1_ps(1 / lambda));
    }
    const __mmask16 infinite = _mm512_cmp_ps_mask(v, _mm512_set1_ps(kInfinity), _CMP_EQ_OQ);
    const __mmask16 nan = _mm512_cmp_ps_mask(v, v, _CMP_UNORD_Q);
    result = _mm512_mask_mov_ps(result, infinite, _mm512_set1_ps(Limit()));
    return _mm512_mask_mov_ps(result, nan, v);
  }

  template <bool kLog>
  HR_AVX512 HR_INLINE void Some(float* values, size_t n) const {
    const __mmask16 lanes = FirstLanes16(n);
    _mm512_mask_storeu_ps(values, lanes, One<kLog>(_mm512_maskz_loadu_ps(lanes, values)));
  }

  template <bool kLog>
  HR_AVX512 void Avx512(std::span<float> values) const {
    const size_t n = values.size();
    size_t i = UnalignedHead(values.data(), n);
    if (i > 0) Some<kLog>(values.data(), i);
    for (; i + 16 <= n; i += 16)
      _mm512_storeu_ps(&values[i], One<kLog>(_mm512_loadu_ps(&values[i])));
    if (i < n) Some<kLog>(&values[i], n - i);
  }

  template <bool kLog>
  HR_AVX2 HR_INLINE __m256 One(__m256 x) const {
    const __m256 v = _mm256_max_ps(_mm256_set1_ps(floor), _mm256_add_ps(x, _mm256_set1_ps(shift)));
    __m256 high, low, result;
    LogParts(v, &high, &low);
    if constexpr (kLog) {
      result = _mm256_add_ps(high, low);
    } else {
      const __m256 l = _mm256_set1_ps(lambda), product = _mm256_mul_ps(l, high);
      const __m256 rest = _mm256_fmadd_ps(l, low, _mm256_fmsub_ps(l, high, product));
      result = ScaledExpMinus1(product, rest, _mm256_set1_ps(1 / lambda));
    }
    const __m256 infinite = _mm256_cmp_ps(v, _mm256_set1_ps(kInfinity), _CMP_EQ_OQ);
    const __m256 nan = _mm256_cmp_ps(v, v, _CMP_UNORD_Q);
    result = _mm256_blendv_ps(result, _mm256_set1_ps(Limit()), infinite);
    return _mm256_blendv_ps(result, v, nan);
  }

  template <bool kLog>
  HR_AVX2 void Avx2(std::span<float> values) const {
    const size_t n = values.size();
    size_t i = 0;
    for (; i + 8 <= n; i += 8) _mm256_storeu_ps(&values[i], One<kLog>(_mm256_loadu_ps(&values[i])));
    if (i == n) return;
    const __m256i lanes = FirstLanesMask8(n - i);
    _mm256_maskstore_ps(&values[i], lanes, One<kLog>(_mm256_maskload_ps(&values[i], lanes)));
  }
#endif

  float lambda, shift, floor;
};

HR_TRANSFORM(
    "box_cox", BoxCox,
    {.summary = "Gives the Box-Cox power transform of a value.",
     .semantics =
         "(v^lambda - 1) / lambda with v = max(x + shift, floor); log(v) when lambda is 0. "
         "NaN stays NaN. Vector kernels are within 4 ulp of the reference.",
     .cost = "per value, compute-bound (a logarithm and an exponential)",
     .inputs = {InputKind::kDense},
     .max_inputs = 1,
     .output = OutputKind::kDense,
     .params = {{"lambda", "real", "", "exponent: 0, or 1e-6 to 8 in size"},
                {"shift", "real", "0", "added to the value first"},
                {"floor", "real", "1e-6", "least value that is transformed"}},
     .examples = {{"lambda=0.5", "4 1 - nan inf", "2 0 - nan inf"},
                  {"lambda=0 shift=1", "0 inf", "0 inf"},
                  {"lambda=2 shift=1", "2 -", "4 -"},
                  {"lambda=-0.5", "4 inf", "1 2"}},
     .make = nullptr});

}  // namespace
}  // namespace headrace::reader
