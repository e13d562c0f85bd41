// NGram: a new id for each run of n neighbouring ids, over one or several sparse features.
// Shape: lists -> one list per row, of max(0, length - n + 1) ids.  Cost: n + 1 64-bit
// multiplications per n-gram, compute-bound.
//
// The ids of a row's inputs are laid end to end; each window is folded and mixed as id_hash.h says.
// Not SigridHash's two mixes: they cost twice as much, and its own hash comes behind this anyway.
#include "reader/batch/array.h"
#include "reader/transforms/id_hash.h"
#include "reader/transforms/lists.h"
#include "reader/transforms/transform.h"

namespace headrace::reader {
namespace {

struct NGram final : ListTransform {
  explicit NGram(const Params& params) : n(static_cast<uint64_t>(params.Integer("n", 2))) {
    params.Require(params.Integer("n", 2) >= 1 && params.Integer("n", 2) <= 16, "n",
                   "be between 1 and 16");
  }

  void Reference(const TransformInputs& in, SparseColumn* out) const override {
    out->present = PresentInAny(in.sparse, in.rows);
    out->offsets.push_back(0);
    for (uint64_t row = 0; row < in.rows; ++row) {
      std::vector<int64_t> ids;
      for (const SparseColumn* column : in.sparse)
        for (const int64_t id : Ids(*column, row)) ids.push_back(id);
      for (size_t first = 0; first + n <= ids.size(); ++first) {
        auto folded = static_cast<uint64_t>(ids[first]);
        for (size_t i = 1; i < n; ++i)
          folded = FoldId(folded, static_cast<uint64_t>(ids[first + i]));
        out->values.push_back(static_cast<int64_t>(FinishFold(folded)));
      }
      EndRow(out);
    }
  }

  void Apply(const TransformInputs& in, SparseColumn* out, InstructionSet set) const override {
    // One input's lists lie end to end already.
    if (in.sparse.size() == 1)
      return Windows(in.sparse[0]->offsets, in.sparse[0]->values.data(), in, out, set);
    Array<uint32_t> offsets(in.rows + 1);
    uint64_t total = 0;
    for (const SparseColumn* column : in.sparse) total += column->values.size();
    Array<int64_t> ids(total);
    Gather(in, &offsets, &ids);
    Windows(offsets, ids.data(), in, out, set);
  }

  // The inputs' lists end to end, row by row.
  static void Gather(const TransformInputs& in, Array<uint32_t>* offsets, Array<int64_t>* ids) {
    auto place = ids->begin();
    (*offsets)[0] = 0;
    for (uint64_t row = 0; row < in.rows; ++row) {
      for (const SparseColumn* column : in.sparse) {
        const std::span<const int64_t> list = Ids(*column, row);
        place = std::copy(list.begin(), list.end(), place);
      }
      (*offsets)[row + 1] = static_cast<uint32_t>(place - ids->begin());
    }
  }

  uint64_t Grams(uint64_t length) const { return length < n ? 0 : length - n + 1; }

  void Windows(const Array<uint32_t>& offsets, const int64_t* ids, const TransformInputs& in,
               SparseColumn* out, InstructionSet set) const {
    uint64_t grams = 0;
    for (uint64_t row = 0; row < in.rows; ++row) grams += Grams(offsets[row + 1] - offsets[row]);
    ReserveLists(out, in.rows, grams);
    out->present = PresentInAny(in.sparse, in.rows);
    for (uint64_t row = 0; row < in.rows; ++row)
      out->offsets[row + 1] =
          out->offsets[row] + static_cast<uint32_t>(Grams(offsets[row + 1] - offsets[row]));
#if defined(HR_X86)
    if (set == InstructionSet::kAvx512)
      return n == 2 ? FoldAvx512<2>(ids, offsets, in.rows, out)
                    : FoldAvx512<0>(ids, offsets, in.rows, out);
    if (set == InstructionSet::kAvx2) return FoldAvx2(ids, offsets, in.rows, out);
#endif
    (void)set;
    for (uint64_t row = 0; row < in.rows; ++row) FoldFrom(0, ids + offsets[row], out, row);
  }

  // N-grams [first, ...) of one row from its ids.
  void FoldFrom(size_t first, const int64_t* ids, SparseColumn* out, uint64_t row) const {
    int64_t* target = out->values.data() + out->offsets[row];
    const size_t count = out->offsets[row + 1] - out->offsets[row];
    for (size_t k = first; k < count; ++k) {
      auto folded = static_cast<uint64_t>(ids[k]);
      for (size_t i = 1; i < n; ++i) folded = FoldId(folded, static_cast<uint64_t>(ids[k + i]));
      target[k] = static_cast<int64_t>(FinishFold(folded));
    }
  }

#if defined(HR_X86)
  // kSize: the n known when compiled, or 0.
  template <size_t kSize>
  HR_AVX512 void FoldAvx512(const int64_t* all_ids, const Array<uint32_t>& offsets, uint64_t rows,
                            SparseColumn* out) const {
    const size_t size = kSize == 0 ? n : kSize;
    for (uint64_t row = 0; row < rows; ++row) {
      const int64_t* ids = all_ids + offsets[row];
      int64_t* target = out->values.data() + out->offsets[row];
      const size_t count = out->offsets[row + 1] - out->offsets[row];
      size_t k = 0;
      for (; k + 8 <= count; k += 8) {
        __m512i folded = _mm512_loadu_si512(ids + k);
        for (size_t i = 1; i < size; ++i) folded = FoldId(folded, _mm512_loadu_si512(ids + k + i));
        _mm512_storeu_si512(target + k, FinishFold(folded));
      }
      if (k == count) continue;
      const __mmask8 lanes = FirstLanes8(count - k);
      __m512i folded = _mm512_maskz_loadu_epi64(lanes, ids + k);
      for (size_t i = 1; i < size; ++i)
        folded = FoldId(folded, _mm512_maskz_loadu_epi64(lanes, ids + k + i));
      _mm512_mask_storeu_epi64(target + k, lanes, FinishFold(folded));
    }
  }

  HR_AVX2 static HR_INLINE __m256i Load(const int64_t* ids) {
    return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(ids));
  }

  HR_AVX2 void FoldAvx2(const int64_t* all_ids, const Array<uint32_t>& offsets, uint64_t rows,
                        SparseColumn* out) const {
    for (uint64_t row = 0; row < rows; ++row) {
      const int64_t* ids = all_ids + offsets[row];
      int64_t* target = out->values.data() + out->offsets[row];
      const size_t count = out->offsets[row + 1] - out->offsets[row];
      size_t k = 0;
      for (; k + 4 <= count; k += 4) {
        __m256i folded = Load(ids + k);
        for (size_t i = 1; i < n; ++i) folded = FoldId(folded, Load(ids + k + i));
        _mm256_storeu_si256(reinterpret_cast<__m256i*>(target + k), FinishFold(folded));
      }
      FoldFrom(k, ids, out, row);
    }
  }
#endif

  uint64_t n;
};

HR_TRANSFORM(
    "ngram", NGram,
    {.summary = "Makes a new id of each run of `n` neighbouring ids.",
     .semantics =
         "The ids of all inputs are laid end to end, in the order of the inputs; each "
         "window x1 .. xn becomes mix(..(x1 k + x2) k .. + xn) modulo 2^64, with k = "
         "0x9e3779b97f4a7c15 and MurmurHash3's fmix64 as mix: two different pairs of ids below "
         "2^31 never meet. Fewer than `n` ids give an empty list. A row is absent when all its "
         "inputs are.",
     .cost = "per id and per n-gram, compute-bound; grows with `n`",
     .inputs = {InputKind::kSparse},
     .max_inputs = 8,
     .output = OutputKind::kSparse,
     .params = {{"n", "integer", "2", "ids per n-gram, 1 to 16"}},
     .examples = {{"n=3", "1 2 | () | -", "() | () | -"},
                  {"n=1", "0 | - | 1 1", "0 | - | -5451962507482445012 -5451962507482445012"}},
     .make = nullptr});

}  // namespace
}  // namespace headrace::reader
