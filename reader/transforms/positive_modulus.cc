// PositiveModulus: the non-negative remainder of each id, which brings ids into [0, divisor)
// without hashing them. Shape: int64[n] -> int64[n], in place.  Cost: two 64-bit multiplications
// per id.
#include <algorithm>

#include "reader/transforms/floor_modulus.h"
#include "reader/transforms/transform.h"

namespace headrace::reader {
namespace {

struct PositiveModulus final : IdTransform {
  explicit PositiveModulus(const Params& params)
      : modulus(std::max<int64_t>(params.Integer("divisor"), 1)) {
    params.Require(params.Integer("divisor") > 0, "divisor", "be positive");
  }

  void Reference(std::span<int64_t> ids) const override {
    for (int64_t& id : ids) {
      const int64_t rest = id % modulus.divisor;
      id = rest < 0 ? rest + modulus.divisor : rest;
    }
  }

  void Apply(std::span<int64_t> ids, InstructionSet set) const override {
    size_t done = 0;
    if (modulus.divisor >= 2) {
#if defined(HR_X86)
      if (set == InstructionSet::kAvx512)
        return modulus.fits_52_bits && HasIfma() ? Avx512Ifma(ids) : Avx512(ids);
      if (set == InstructionSet::kAvx2) done = Avx2(ids);
#endif
    }
    for (size_t i = done; i < ids.size(); ++i) ids[i] = modulus(ids[i]);
    (void)set;
  }

#if defined(HR_X86)
  HR_AVX512 void Avx512(std::span<int64_t> ids) const {
    for (size_t i = 0; i < ids.size(); i += 8) {
      const __mmask8 lanes = FirstLanes8(ids.size() - i);
      const __m512i some = _mm512_maskz_loadu_epi64(lanes, &ids[i]);
      _mm512_mask_storeu_epi64(&ids[i], lanes, modulus.Avx512(some));
    }
  }

  HR_AVX512_IFMA HR_INLINE void SomeIfma(int64_t* ids, size_t n) const {
    const __mmask8 lanes = FirstLanes8(n);
    const __m512i some = _mm512_maskz_loadu_epi64(lanes, ids);
    _mm512_mask_storeu_epi64(ids, lanes, modulus.Avx512Ifma(some));
  }

  HR_AVX512_IFMA void Avx512Ifma(std::span<int64_t> ids) const {
    const size_t n = ids.size();
    size_t i = UnalignedHead(ids.data(), n);
    if (i > 0) SomeIfma(ids.data(), i);
    for (; i + 8 <= n; i += 8)
      _mm512_storeu_si512(&ids[i], modulus.Avx512Ifma(_mm512_loadu_si512(&ids[i])));
    if (i < n) SomeIfma(&ids[i], n - i);
  }

  HR_AVX2 size_t Avx2(std::span<int64_t> ids) const {
    size_t i = 0;
    for (; i + 4 <= ids.size(); i += 4) {
      auto* place = reinterpret_cast<__m256i*>(&ids[i]);
      _mm256_storeu_si256(place, modulus.Avx2(_mm256_loadu_si256(place)));
    }
    return i;
  }
#endif

  FloorModulus modulus;
};

HR_TRANSFORM("positive_modulus", PositiveModulus,
             {.summary = "Replaces each id by its non-negative remainder modulo `divisor`.",
              .semantics = "-1 modulo 10 is 9, as in Python. Weights stay.",
              .cost = "per id, compute-bound (two 64-bit multiplications)",
              .inputs = {InputKind::kAnyIds},
              .max_inputs = 1,
              .output = OutputKind::kAsFirstInput,
              .params = {{"divisor", "integer", "", "what to divide by, >= 1"}},
              .examples = {{"divisor=10", "-1 0 9 10 | - | 25", "9 0 9 0 | - | 5"},
                           {"divisor=1", "7 -7", "0 0"}},
              .make = nullptr});

}  // namespace
}  // namespace headrace::reader
