// Cartesian: a new id for each pair of an id of the first list and an id of the second.
// Shape: two lists of l and m ids -> one list of l * m.  Cost: three 64-bit multiplications per
// pair, compute-bound; the output grows with the product of the lengths.
#include "reader/batch/recycle.h"
#include "reader/transforms/id_hash.h"
#include "reader/transforms/lists.h"
#include "reader/transforms/transform.h"

namespace headrace::reader {
namespace {

struct Cartesian final : ListTransform {
  explicit Cartesian(const Params&) {}

  void Reference(const TransformInputs& in, SparseColumn* out) const override {
    out->present = PresentInAll(in.sparse, in.rows);
    out->offsets.push_back(0);
    for (uint64_t row = 0; row < in.rows; ++row) {
      for (const int64_t a : Ids(*in.sparse[0], row))
        for (const int64_t b : Ids(*in.sparse[1], row))
          out->values.push_back(static_cast<int64_t>(
              CombineHashes(MixId(static_cast<uint64_t>(a)), MixId(static_cast<uint64_t>(b)))));
      EndRow(out);
    }
  }

  void Apply(const TransformInputs& in, SparseColumn* out, InstructionSet set) const override {
    const SparseColumn &first = *in.sparse[0], &second = *in.sparse[1];
    uint64_t total = 0;
    for (uint64_t row = 0; row < in.rows; ++row)
      total += Ids(first, row).size() * Ids(second, row).size();
    ReserveLists(out, in.rows, total);
    out->present = PresentInAll(in.sparse, in.rows);
    int64_t* place = out->values.data();
    for (uint64_t row = 0; row < in.rows; ++row) {
      const std::span<const int64_t> a = Ids(first, row), b = Ids(second, row);
#if defined(HR_X86)
      if (set == InstructionSet::kAvx512) {
        PairsAvx512(a, b, place);
      } else
#endif
      {
        Pairs(a, b, place);
      }
      place += a.size() * b.size();
      out->offsets[row + 1] = static_cast<uint32_t>(place - out->values.data());
    }
    (void)set;
  }

  static void Pairs(std::span<const int64_t> a, std::span<const int64_t> b, int64_t* out) {
    for (const int64_t x : a) {
      const uint64_t upper = MixId(static_cast<uint64_t>(x));
      for (const int64_t y : b)
        *out++ = static_cast<int64_t>(CombineHashes(upper, MixId(static_cast<uint64_t>(y))));
    }
  }

#if defined(HR_X86)
  HR_AVX512 static void PairsAvx512(std::span<const int64_t> a, std::span<const int64_t> b,
                                    int64_t* out) {
    for (size_t j = 0; j < b.size(); j += 8) {
      const size_t left = b.size() - j;
      const auto lanes = static_cast<__mmask8>(left >= 8 ? 0xff : (1u << left) - 1);
      const __m512i lower = MixId(_mm512_maskz_loadu_epi64(lanes, b.data() + j));
      for (size_t i = 0; i < a.size(); ++i) {
        const auto upper = static_cast<int64_t>(MixId(static_cast<uint64_t>(a[i])));
        _mm512_mask_storeu_epi64(out + i * b.size() + j, lanes,
                                 CombineHashes(_mm512_set1_epi64(upper), lower));
      }
    }
  }
#endif
};

HR_TRANSFORM(
    "cartesian", Cartesian,
    {.summary = "Makes a new id of each pair of an id of the first and one of the second "
                "feature.",
     .semantics = "Pairs go by the first list, then the second; a pair is hashed as a 2-gram is. A "
                  "row needs both features.",
     .cost = "per pair, compute-bound; grows with the product of the lengths",
     .inputs = {InputKind::kSparse, InputKind::kSparse},
     .max_inputs = 2,
     .output = OutputKind::kSparse,
     .params = {},
     .examples = {{"", "1 2 | () | - | 3 ; () | 4 | 5 | -", "() | () | - | -"}},
     .make = nullptr});

}  // namespace
}  // namespace headrace::reader
