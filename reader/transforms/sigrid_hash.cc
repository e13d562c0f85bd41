// SigridHash: replaces each id by a salted hash in [0, max), the row of its embedding table.
// Shape: int64[n] -> int64[n], in place.  Cost: about five 64-bit multiplications per id,
// compute-bound. Source: TorchArrow's sigrid_hash, the open reference implementation; equal bit for
// bit.
#include <algorithm>

#include "reader/transforms/floor_modulus.h"
#include "reader/transforms/id_hash.h"
#include "reader/transforms/transform.h"

namespace headrace::reader {
namespace {

struct SigridHash final : IdTransform {
  explicit SigridHash(const Params& params)
      : salt(params.Integer("salt", 0)), modulus(std::max<int64_t>(params.Integer("max"), 1)) {
    params.Require(params.Integer("max") > 0, "max", "be positive");
  }

  void Reference(std::span<int64_t> ids) const override {
    for (int64_t& id : ids) {
      const auto hash = static_cast<int64_t>(
          CombineHashes(static_cast<uint64_t>(salt), MixId(static_cast<uint64_t>(id))));
      const int64_t rest = hash % modulus.divisor;
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
    for (size_t i = done; i < ids.size(); ++i) {
      ids[i] = modulus(static_cast<int64_t>(
          CombineHashes(static_cast<uint64_t>(salt), MixId(static_cast<uint64_t>(ids[i])))));
    }
    (void)set;
  }

#if defined(HR_X86)
  HR_AVX512 HR_INLINE __m512i Hash(__m512i ids) const {
    return CombineHashes(_mm512_set1_epi64(salt), MixId(ids));
  }

  HR_AVX512 void Avx512(std::span<int64_t> ids) const {
    for (size_t i = 0; i < ids.size(); i += 8) {
      PrefetchAhead(&ids[i]);
      const __mmask8 lanes = FirstLanes8(ids.size() - i);
      const __m512i hash = Hash(_mm512_maskz_loadu_epi64(lanes, &ids[i]));
      _mm512_mask_storeu_epi64(&ids[i], lanes, modulus.Avx512(hash));
    }
  }

  HR_AVX512_IFMA void Avx512Ifma(std::span<int64_t> ids) const {
    const size_t n = ids.size();
    size_t i = 0;
    for (; i + 8 <= n; i += 8) {
      PrefetchAhead(&ids[i]);
      _mm512_storeu_si512(&ids[i], modulus.Avx512Ifma(Hash(_mm512_loadu_si512(&ids[i]))));
    }
    if (i == n) return;
    const __mmask8 lanes = FirstLanes8(n - i);
    const __m512i hash = Hash(_mm512_maskz_loadu_epi64(lanes, &ids[i]));
    _mm512_mask_storeu_epi64(&ids[i], lanes, modulus.Avx512Ifma(hash));
  }

  HR_AVX2 size_t Avx2(std::span<int64_t> ids) const {
    const __m256i upper = _mm256_set1_epi64x(salt);
    size_t i = 0;
    for (; i + 4 <= ids.size(); i += 4) {
      auto* place = reinterpret_cast<__m256i*>(&ids[i]);
      const __m256i hash = CombineHashes(upper, MixId(_mm256_loadu_si256(place)));
      _mm256_storeu_si256(place, modulus.Avx2(hash));
    }
    return i;
  }
#endif

  int64_t salt;
  FloorModulus modulus;
};

HR_TRANSFORM(
    "sigrid_hash", SigridHash,
    {.summary = "Replaces each id by a salted hash in [0, max).",
     .semantics =
         "TorchArrow's formula bit for bit: a 64-bit integer mix of the id, a 128-to-64-bit "
         "mix with the salt, then the non-negative remainder modulo `max`; `max = 1` gives "
         "0. Weights stay.",
     .cost = "per id, compute-bound (five 64-bit multiplications)",
     .inputs = {InputKind::kAnyIds},
     .max_inputs = 1,
     .output = OutputKind::kAsFirstInput,
     .params = {{"salt", "integer", "0", "seed of the hash; one per feature"},
                {"max", "integer", "", "number of rows of the embedding table, >= 1"}},
     .examples = {{"max=100", "1 2 3 4 5 | 6 7 8 9 10 | - | ()",
                   "60 54 54 9 4 | 91 11 67 79 2 | - | ()"},
                  {"max=100 salt=0", "11 | 12 13 | 14 15 16", "25 | 92 98 | 83 66 2"},
                  {"max=1 salt=5", "11:0.5 12:1", "0:0.5 0:1"}},
     .make = nullptr});

}  // namespace
}  // namespace headrace::reader
