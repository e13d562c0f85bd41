// Scale: moves and stretches a dense feature by constants: min-max to [0, 1] or to z-scores.
// Shape: float[rows] -> float[rows], in place.  Cost: one subtraction and one division per value.
// Source: TorchArrow's scale_to_0_1 and scale_to_z_score. Theirs measure the column they are given;
// here the constants are parameters, so that a value does not depend on the batch it is in.
#include <cmath>

#include "reader/transforms/simd.h"
#include "reader/transforms/transform.h"

namespace headrace::reader {
namespace {

struct Scale final : DenseTransform {
  explicit Scale(const Params& params) {
    const std::string mode = params.Text("mode");
    params.Require(mode == "min_max" || mode == "z_score", "mode", "be min_max or z_score");
    const bool min_max = mode == "min_max";
    for (const char* other : {min_max ? "mean" : "low", min_max ? "deviation" : "high"})
      params.Require(!params.Has(other), other, "be left out: mode " + mode + " does not use it");
    if (min_max) {
      offset = params.Float("low");
      width = params.Float("high") - offset;
      params.Require(width > 0 && std::isfinite(width), "high", "exceed 'low' by a finite amount");
    } else {
      offset = params.Float("mean");
      width = params.Float("deviation");
      params.Require(width > 0, "deviation", "be positive");
    }
  }

  void Reference(std::span<float> values) const override {
    for (float& x : values) x = (x - offset) / width;
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
  // A division, not a product with 1 / width, which would be off by a unit in the last place.
  HR_AVX512 HR_INLINE __m512 One(__m512 x) const {
    return _mm512_div_ps(_mm512_sub_ps(x, _mm512_set1_ps(offset)), _mm512_set1_ps(width));
  }

  HR_AVX512 void Avx512(std::span<float> values) const {
    const size_t n = values.size();
    size_t i = 0;
    for (; i + 16 <= n; i += 16) _mm512_storeu_ps(&values[i], One(_mm512_loadu_ps(&values[i])));
    if (i == n) return;
    const __mmask16 lanes = FirstLanes16(n - i);
    _mm512_mask_storeu_ps(&values[i], lanes, One(_mm512_maskz_loadu_ps(lanes, &values[i])));
  }

  HR_AVX2 size_t Avx2(std::span<float> values) const {
    const __m256 offsets = _mm256_set1_ps(offset), widths = _mm256_set1_ps(width);
    size_t i = 0;
    for (; i + 8 <= values.size(); i += 8) {
      const __m256 x = _mm256_loadu_ps(&values[i]);
      _mm256_storeu_ps(&values[i], _mm256_div_ps(_mm256_sub_ps(x, offsets), widths));
    }
    return i;
  }
#endif

  float offset, width;
};

HR_TRANSFORM(
    "scale", Scale,
    {.summary = "Normalises a value by constants: to [0, 1], or to a z-score.",
     .semantics = "`min_max` gives (x - low) / (high - low), `z_score` (x - mean) / deviation, in "
                  "single precision with a true division. Values outside [low, high] leave [0, 1]; "
                  "`clamp` cuts them. NaN stays NaN. The constants are the feature's, measured "
                  "beforehand: those of a batch would make a value depend on its neighbours.",
     .cost = "per value, one division: between memory- and compute-bound",
     .inputs = {InputKind::kDense},
     .max_inputs = 1,
     .output = OutputKind::kDense,
     .params = {{"mode", "text", "", "min_max or z_score"},
                {"low", "real", "none", "min_max: becomes 0"},
                {"high", "real", "none", "min_max: becomes 1; > low"},
                {"mean", "real", "none", "z_score: becomes 0"},
                {"deviation", "real", "none", "z_score: standard deviation, > 0"}},
     .examples = {{"mode=min_max low=1 high=5", "1 2 3 4 5", "0 0.25 0.5 0.75 1"},
                  {"mode=min_max low=-1 high=1", "- 0 3 nan inf", "- 0.5 2 nan inf"},
                  {"mode=z_score mean=3 deviation=2", "1 3 6 -", "-1 0 1.5 -"}},
     .make = nullptr});

}  // namespace
}  // namespace headrace::reader
