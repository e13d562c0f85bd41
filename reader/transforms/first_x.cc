// FirstX: keeps the first `count` ids of each list. Shape: lists -> lists, never longer.
// Cost: one copy of the ids kept, memory-bound. Source: TorchArrow's firstx: min(count, length).
#include <algorithm>

#include "reader/batch/array.h"
#include "reader/transforms/lists.h"
#include "reader/transforms/simd.h"
#include "reader/transforms/transform.h"

namespace headrace::reader {
namespace {

template <typename T>
void CopyPlain(const T* from, uint32_t count, T* to) {
  std::copy_n(from, count, to);
}

#if defined(HR_X86)
// Short copies of any length without a call: whole vectors, then one masked vector.
HR_AVX512 HR_INLINE void CopyMasked(const int64_t* from, uint32_t count, int64_t* to) {
  uint32_t i = 0;
  for (; i + 8 <= count; i += 8) _mm512_storeu_si512(to + i, _mm512_loadu_si512(from + i));
  const auto tail = static_cast<__mmask8>((1u << (count - i)) - 1);
  _mm512_mask_storeu_epi64(to + i, tail, _mm512_maskz_loadu_epi64(tail, from + i));
}
#endif

struct FirstX final : ListTransform {
  explicit FirstX(const Params& params) : count(static_cast<uint64_t>(params.Integer("count"))) {
    params.Require(params.Integer("count") >= 0, "count", "not be negative");
  }

  void Reference(const TransformInputs& in, SparseColumn* out) const override {
    const SparseColumn& from = *in.sparse[0];
    out->present = from.present;
    out->weighted = from.weighted;
    out->offsets.push_back(0);
    for (uint64_t row = 0; row < in.rows; ++row) {
      for (uint64_t i = from.offsets[row]; i < from.offsets[row + 1]; ++i) {
        if (i - from.offsets[row] >= count) break;
        out->values.push_back(from.values[i]);
        if (!from.weights.empty()) out->weights.push_back(from.weights[i]);
      }
      out->offsets.push_back(static_cast<uint32_t>(out->values.size()));
    }
  }

  void Apply(const TransformInputs& in, SparseColumn* out, InstructionSet set) const override {
    const SparseColumn& from = *in.sparse[0];
    uint64_t total = 0;
    for (uint64_t row = 0; row < in.rows; ++row)
      total += std::min<uint64_t>(count, from.offsets[row + 1] - from.offsets[row]);
    ReserveLists(out, in.rows, total);
    out->present = from.present;
    out->weighted = from.weighted;
    for (uint64_t row = 0; row < in.rows; ++row)
      out->offsets[row + 1] =
          out->offsets[row] + static_cast<uint32_t>(std::min<uint64_t>(
                                  count, from.offsets[row + 1] - from.offsets[row]));
    CopyIds(from, in.rows, out, set);
    if (from.weights.empty()) return;
    out->weights = Array<float>(total);
    for (uint64_t row = 0; row < in.rows; ++row)
      CopyPlain(from.weights.data() + from.offsets[row], out->offsets[row + 1] - out->offsets[row],
                out->weights.data() + out->offsets[row]);
  }

  static void CopyIds(const SparseColumn& from, uint64_t rows, SparseColumn* out,
                      InstructionSet set) {
#if defined(HR_X86)
    if (set == InstructionSet::kAvx512) return CopyIdsAvx512(from, rows, out);
#endif
    (void)set;
    for (uint64_t row = 0; row < rows; ++row)
      CopyPlain(from.values.data() + from.offsets[row], out->offsets[row + 1] - out->offsets[row],
                out->values.data() + out->offsets[row]);
  }

#if defined(HR_X86)
  HR_AVX512 static void CopyIdsAvx512(const SparseColumn& from, uint64_t rows, SparseColumn* out) {
    const int64_t* source = from.values.data();
    int64_t* target = out->values.data();
    for (uint64_t row = 0; row < rows; ++row)
      CopyMasked(source + from.offsets[row], out->offsets[row + 1] - out->offsets[row],
                 target + out->offsets[row]);
  }
#endif

  uint64_t count;
};

HR_TRANSFORM("first_x", FirstX,
             {.summary = "Keeps the first `count` ids of each list.",
              .semantics = "A shorter list stays as it is. Weights are cut alike.",
              .cost = "per id kept, memory-bound",
              .inputs = {InputKind::kAnyIds},
              .max_inputs = 1,
              .output = OutputKind::kAsFirstInput,
              .params = {{"count", "integer", "", "longest list that remains, >= 0"}},
              .examples = {{"count=2", "7 8 9 | () | - | 5", "7 8 | () | - | 5"},
                           {"count=0", "7 | -", "() | -"},
                           {"count=1", "7:0.5 8:0.25 | -", "7:0.5 | -"}},
              .use = IdUse::kPlaces,
              .make = nullptr});

}  // namespace
}  // namespace headrace::reader
