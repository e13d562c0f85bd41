// NGram: a new id for each run of n neighbouring ids, over one or several sparse features.
// Shape: lists -> one list per row, of max(0, length - n + 1) ids.  Cost: one integer mix per id
// and n - 1 combinations per n-gram, compute-bound.
//
// The ids of a row's inputs are laid end to end; with m(x) the integer mix of SigridHash and c its
// 128-to-64-bit mix, the n-gram (x1 .. xn) is c(.. c(c(m(x1), m(x2)), m(x3)) .., m(xn)).
#include "reader/batch/recycle.h"
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
        uint64_t hash = MixId(static_cast<uint64_t>(ids[first]));
        for (size_t i = 1; i < n; ++i)
          hash = CombineHashes(hash, MixId(static_cast<uint64_t>(ids[first + i])));
        out->values.push_back(static_cast<int64_t>(hash));
      }
      EndRow(out);
    }
  }

  // Mixes every id once, then combines neighbours.
  void Apply(const TransformInputs& in, SparseColumn* out, InstructionSet set) const override {
    std::vector<uint32_t> offsets = TakeVector<uint32_t>(in.rows + 1);
    uint64_t ids = 0, grams = 0;
    for (const SparseColumn* column : in.sparse) ids += column->values.size();
    std::vector<int64_t> mixed = TakeVector<int64_t>(ids);
    Gather(in, &offsets, &mixed);
    for (uint64_t row = 0; row < in.rows; ++row) grams += Grams(offsets[row + 1] - offsets[row]);
    ReserveLists(out, in.rows, grams);
    out->present = PresentInAny(in.sparse, in.rows);
    for (uint64_t row = 0; row < in.rows; ++row)
      out->offsets[row + 1] =
          out->offsets[row] + static_cast<uint32_t>(Grams(offsets[row + 1] - offsets[row]));
#if defined(HR_X86)
    if (set == InstructionSet::kAvx512) {
      MixAvx512(mixed.data(), ids);
      CombineAvx512(mixed.data(), offsets, in.rows, out);
    } else if (set == InstructionSet::kAvx2) {
      MixAvx2(mixed.data(), ids);
      CombineAvx2(mixed.data(), offsets, in.rows, out);
    } else
#endif
    {
      MixFrom(0, mixed.data(), ids);
      for (uint64_t row = 0; row < in.rows; ++row)
        CombineFrom(0, mixed.data() + offsets[row], out, row);
    }
    (void)set;
    RecycleVector(std::move(offsets));
    RecycleVector(std::move(mixed));
  }

  uint64_t Grams(uint64_t length) const { return length < n ? 0 : length - n + 1; }

  // The inputs' lists end to end, row by row.
  static void Gather(const TransformInputs& in, std::vector<uint32_t>* offsets,
                     std::vector<int64_t>* ids) {
    if (in.sparse.size() == 1) {
      std::copy(in.sparse[0]->offsets.begin(), in.sparse[0]->offsets.end(), offsets->begin());
      std::copy(in.sparse[0]->values.begin(), in.sparse[0]->values.end(), ids->begin());
      return;
    }
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

  static void MixFrom(size_t first, int64_t* ids, size_t count) {
    for (size_t i = first; i < count; ++i)
      ids[i] = static_cast<int64_t>(MixId(static_cast<uint64_t>(ids[i])));
  }

  // N-grams [first, ...) of one row from its mixed ids.
  void CombineFrom(size_t first, const int64_t* mixed, SparseColumn* out, uint64_t row) const {
    int64_t* target = out->values.data() + out->offsets[row];
    const size_t count = out->offsets[row + 1] - out->offsets[row];
    for (size_t k = first; k < count; ++k) {
      auto hash = static_cast<uint64_t>(mixed[k]);
      for (size_t i = 1; i < n; ++i)
        hash = CombineHashes(hash, static_cast<uint64_t>(mixed[k + i]));
      target[k] = static_cast<int64_t>(hash);
    }
  }

#if defined(HR_X86)
  HR_AVX512 static void MixAvx512(int64_t* ids, size_t count) {
    size_t i = 0;
    for (; i + 8 <= count; i += 8) _mm512_storeu_si512(ids + i, MixId(_mm512_loadu_si512(ids + i)));
    MixFrom(i, ids, count);
  }

  HR_AVX512 void CombineAvx512(const int64_t* ids, const std::vector<uint32_t>& offsets,
                               uint64_t rows, SparseColumn* out) const {
    for (uint64_t row = 0; row < rows; ++row) {
      const int64_t* mixed = ids + offsets[row];
      int64_t* target = out->values.data() + out->offsets[row];
      const size_t count = out->offsets[row + 1] - out->offsets[row];
      for (size_t k = 0; k < count; k += 8) {
        const auto lanes = static_cast<__mmask8>(count - k >= 8 ? 0xff : (1u << (count - k)) - 1);
        __m512i hash = _mm512_maskz_loadu_epi64(lanes, mixed + k);
        for (size_t i = 1; i < n; ++i)
          hash = CombineHashes(hash, _mm512_maskz_loadu_epi64(lanes, mixed + k + i));
        _mm512_mask_storeu_epi64(target + k, lanes, hash);
      }
    }
  }

  HR_AVX2 static void MixAvx2(int64_t* ids, size_t count) {
    size_t i = 0;
    for (; i + 4 <= count; i += 4) {
      auto* place = reinterpret_cast<__m256i*>(ids + i);
      _mm256_storeu_si256(place, MixId(_mm256_loadu_si256(place)));
    }
    MixFrom(i, ids, count);
  }

  HR_AVX2 static HR_INLINE __m256i Load(const int64_t* ids) {
    return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(ids));
  }

  HR_AVX2 void CombineAvx2(const int64_t* ids, const std::vector<uint32_t>& offsets, uint64_t rows,
                           SparseColumn* out) const {
    for (uint64_t row = 0; row < rows; ++row) {
      const int64_t* mixed = ids + offsets[row];
      int64_t* target = out->values.data() + out->offsets[row];
      const size_t count = out->offsets[row + 1] - out->offsets[row];
      size_t k = 0;
      for (; k + 4 <= count; k += 4) {
        __m256i hash = Load(mixed + k);
        for (size_t i = 1; i < n; ++i) hash = CombineHashes(hash, Load(mixed + k + i));
        _mm256_storeu_si256(reinterpret_cast<__m256i*>(target + k), hash);
      }
      CombineFrom(k, mixed, out, row);
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
         "window of `n` ids is folded from the left with SigridHash's two mixes (no salt, "
         "no modulus). Fewer than `n` ids give an empty list. A row is absent when all its "
         "inputs are.",
     .cost = "per id and per n-gram, compute-bound; grows with `n`",
     .inputs = {InputKind::kSparse},
     .max_inputs = 8,
     .output = OutputKind::kSparse,
     .params = {{"n", "integer", "2", "ids per n-gram, 1 to 16"}},
     .examples = {{"n=3", "1 2 | () | -", "() | () | -"},
                  {"n=1", "0 | - | 1 1",
                   "8633297058295171728 | - | 6614235796240398542 6614235796240398542"}},
     .make = nullptr});

}  // namespace
}  // namespace headrace::reader
