// Cartesian: a new id for each pair of an id of the first list and an id of the second.
// Shape: two lists of l and m ids -> one list of l * m.  Cost: two 64-bit multiplications per
// pair, compute-bound; the output grows with the product of the lengths.
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
              FinishFold(FoldId(static_cast<uint64_t>(a), static_cast<uint64_t>(b)))));
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
      } else if (set == InstructionSet::kAvx2) {
        PairsAvx2(a, b, place);
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
      const uint64_t start = FoldId(static_cast<uint64_t>(x), 0);
      for (const int64_t y : b)
        *out++ = static_cast<int64_t>(FinishFold(start + static_cast<uint64_t>(y)));
    }
  }

#if defined(HR_X86)
  // The rows of the product one after the other: each is written in order.
  HR_AVX512 static void PairsAvx512(std::span<const int64_t> a, std::span<const int64_t> b,
                                    int64_t* out) {
    const size_t whole = b.size() & ~size_t{7};
    const __mmask8 lanes = FirstLanes8(b.size() - whole);
    for (const int64_t x : a) {
      const __m512i start =
          _mm512_set1_epi64(static_cast<int64_t>(FoldId(static_cast<uint64_t>(x), 0)));
      for (size_t j = 0; j < whole; j += 8) {
        const __m512i y = _mm512_loadu_si512(b.data() + j);
        _mm512_storeu_si512(out + j, FinishFold(_mm512_add_epi64(start, y)));
      }
      if (lanes != 0) {
        const __m512i y = _mm512_maskz_loadu_epi64(lanes, b.data() + whole);
        _mm512_mask_storeu_epi64(out + whole, lanes, FinishFold(_mm512_add_epi64(start, y)));
      }
      out += b.size();
    }
  }

  HR_AVX2 static void PairsAvx2(std::span<const int64_t> a, std::span<const int64_t> b,
                                int64_t* out) {
    for (const int64_t x : a) {
      const uint64_t start = FoldId(static_cast<uint64_t>(x), 0);
      const __m256i starts = _mm256_set1_epi64x(static_cast<int64_t>(start));
      size_t j = 0;
      for (; j + 4 <= b.size(); j += 4) {
        const __m256i y = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(b.data() + j));
        _mm256_storeu_si256(reinterpret_cast<__m256i*>(out + j),
                            FinishFold(_mm256_add_epi64(starts, y)));
      }
      for (; j < b.size(); ++j)
        out[j] = static_cast<int64_t>(FinishFold(start + static_cast<uint64_t>(b[j])));
      out += b.size();
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
     .examples = {{"", "1 2 | () | - | 3 ; () | 4 | 5 | -", "() | () | - | -"},
                  {"", "0 ; 0 1 1", "0 -5451962507482445012 -5451962507482445012"}},
     .make = nullptr});

}  // namespace
}  // namespace headrace::reader
