// SortByScore: orders each list of ids by their weights, so that what follows (first_x) keeps the
// ids that matter most. Shape: weighted lists -> weighted lists of the same lengths.
// Cost: lists of up to 64 ids by counting, for each id, how many come before it (length^2 / 8
// comparisons of 8 ids at once, no branches); longer ones by a sort of n log n unpredictable
// branches.
#include <algorithm>
#include <bit>
#include <numeric>

#include "reader/batch/array.h"
#include "reader/transforms/lists.h"
#include "reader/transforms/simd.h"
#include "reader/transforms/transform.h"

namespace headrace::reader {
namespace {

struct SortByScore final : ListTransform {
  explicit SortByScore(const Params& params) : ascending(params.Flag("ascending", false)) {}

  // Whether an id of weight `a` goes before one of weight `b`.
  bool Before(float a, float b) const {
    if (a != a || b != b) return a == a;
    return ascending ? a < b : a > b;
  }

  void Reference(const TransformInputs& in, SparseColumn* out) const override {
    const SparseColumn& from = *in.sparse[0];
    out->present = from.present;
    out->weighted = from.weighted;
    out->offsets = from.offsets.Clone();
    std::vector<uint32_t> order(from.values.size());
    std::iota(order.begin(), order.end(), 0u);
    for (uint64_t row = 0; row < in.rows; ++row)
      std::stable_sort(
          order.begin() + from.offsets[row], order.begin() + from.offsets[row + 1],
          [&](uint32_t a, uint32_t b) { return Before(from.weights[a], from.weights[b]); });
    for (const uint32_t i : order) {
      out->values.push_back(from.values[i]);
      out->weights.push_back(from.weights[i]);
    }
  }

  void Apply(const TransformInputs& in, SparseColumn* out, InstructionSet set) const override {
    const SparseColumn& from = *in.sparse[0];
    ReserveLists(out, in.rows, from.values.size());
    out->present = from.present;
    out->weighted = from.weighted;
    out->offsets = from.offsets.Clone();
    out->weights = Array<float>(from.values.size());
    thread_local std::vector<uint64_t> keys;
    for (uint64_t row = 0; row < in.rows; ++row) {
      const uint32_t first = from.offsets[row], length = from.offsets[row + 1] - first;
      const int64_t* ids = from.values.data() + first;
      const float* weights = from.weights.data() + first;
      int64_t* to = out->values.data() + first;
      float* to_weights = out->weights.data() + first;
#if defined(HR_X86)
      if (set == InstructionSet::kAvx512 && length <= kCounted) {
        Count(ids, weights, length, to, to_weights);
        continue;
      }
#endif
      keys.resize(length);
      for (uint32_t i = 0; i < length; ++i) keys[i] = Key(weights[i], i);
      std::sort(keys.begin(), keys.end());
      for (uint32_t i = 0; i < length; ++i) {
        to[i] = ids[static_cast<uint32_t>(keys[i])];
        to_weights[i] = weights[static_cast<uint32_t>(keys[i])];
      }
    }
    (void)set;
  }

  // An integer that sorts as (weight, place) does: NaN last, -0 as 0, equal weights by place.
  uint64_t Key(float weight, uint32_t place) const {
    const auto bits = std::bit_cast<uint32_t>(weight + 0.0f);
    uint32_t order = bits >> 31 != 0 ? ~bits : bits | 0x80000000u;
    if (!ascending) order = ~order;
    if (weight != weight) order = ~0u;
    return static_cast<uint64_t>(order) << 32 | place;
  }

#if defined(HR_X86)
  static constexpr uint32_t kCounted = 64;

  // The keys of 8 ids, numbered from `place`.
  HR_AVX512 HR_INLINE __m512i Keys(__m256 weights, __m512i place) const {
    const __m256i bits = _mm256_castps_si256(_mm256_add_ps(weights, _mm256_setzero_ps()));
    const __m256i flip = _mm256_or_si256(_mm256_srai_epi32(bits, 31), _mm256_set1_epi32(INT32_MIN));
    __m256i order = _mm256_xor_si256(bits, flip);
    if (!ascending) order = _mm256_xor_si256(order, _mm256_set1_epi32(-1));
    order = _mm256_mask_mov_epi32(order, _mm256_cmp_ps_mask(weights, weights, _CMP_UNORD_Q),
                                  _mm256_set1_epi32(-1));
    return _mm512_or_si512(_mm512_slli_epi64(_mm512_cvtepu32_epi64(order), 32), place);
  }

  // All keys differ, so an id's place is the number of lesser keys.
  HR_AVX512 void Count(const int64_t* ids, const float* weights, uint32_t length, int64_t* to,
                       float* to_weights) const {
    alignas(64) uint64_t keys[kCounted];
    const __m512i counting = _mm512_setr_epi64(0, 1, 2, 3, 4, 5, 6, 7);
    for (uint32_t i = 0; i < length; i += 8) {
      const __m256 some = _mm256_maskz_loadu_ps(FirstLanes8(length - i), weights + i);
      _mm512_store_si512(keys + i, Keys(some, _mm512_add_epi64(counting, _mm512_set1_epi64(i))));
    }
    for (uint32_t i = 0; i < length; i += 8) {
      const __m512i mine = _mm512_load_si512(keys + i);
      __m512i place = _mm512_setzero_si512();
      for (uint32_t j = 0; j < length; ++j) {
        const auto other = _mm512_set1_epi64(static_cast<int64_t>(keys[j]));
        place = _mm512_mask_add_epi64(place, _mm512_cmplt_epu64_mask(other, mine), place,
                                      _mm512_set1_epi64(1));
      }
      const __mmask8 lanes = FirstLanes8(length - i);
      _mm512_mask_i64scatter_epi64(to, lanes, place, _mm512_maskz_loadu_epi64(lanes, ids + i), 8);
      _mm512_mask_i64scatter_ps(to_weights, lanes, place, _mm256_maskz_loadu_ps(lanes, weights + i),
                                4);
    }
  }
#endif

  bool ascending;
};

HR_TRANSFORM(
    "sort_by_score", SortByScore,
    {.summary = "Orders the ids of each list by their weights, the greatest first.",
     .semantics =
         "Ids of equal weight keep their order (a stable sort; -0 equals 0); NaN goes last, in "
         "either direction. `first_x` behind it keeps the ids of the greatest weights.",
     .cost = "per id, its list's length / 8 comparisons to 64 ids, a sort beyond",
     .inputs = {InputKind::kWeighted},
     .max_inputs = 1,
     .output = OutputKind::kWeighted,
     .params = {{"ascending", "flag", "false", "the least weight first"}},
     .examples = {{"", "7:0.5 8:2 9:1 | - | ()", "8:2 9:1 7:0.5 | - | ()"},
                  {"", "1:nan 2:0 3:-0 4:inf 5:nan", "4:inf 2:0 3:0 1:nan 5:nan"},
                  {"ascending=true", "7:0.5 8:nan 9:-1 6:0.5", "9:-1 7:0.5 6:0.5 8:nan"}},
     .use = IdUse::kPlaces,
     .make = nullptr});

}  // namespace
}  // namespace headrace::reader
