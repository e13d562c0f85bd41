// Bucketize: replaces a dense value by the number of borders below it, as a list of one id.
// Shape: float[rows] -> one id per row that has the feature, in [0, borders].
// Cost: per value, log2(borders) steps; up to 64 borders live in vector registers, more are
// gathered from the cache. Source: TorchArrow's bucketize (lower_bound; its NaN rule; borders that
// repeat at most twice).
#include <algorithm>
#include <limits>

#include "reader/batch/array.h"
#include "reader/transforms/lists.h"
#include "reader/transforms/simd.h"
#include "reader/transforms/transform.h"

namespace headrace::reader {
namespace {

constexpr uint32_t kFew = 8;          // up to here, borders live in a register each
constexpr uint32_t kLinearAvx2 = 32;  // up to here, 8 lanes compare with every border
constexpr uint32_t kInRegister = 64;  // four 16-lane registers

struct Bucketize final : ListTransform {
  explicit Bucketize(const Params& params) {
    for (const double border : params.Reals("borders"))
      borders.push_back(static_cast<float>(border));
    params.Require(!borders.empty(), "borders", "not be empty");
    params.Require(borders.size() <= (1u << 24), "borders", "have at most 2^24 entries");
    for (size_t i = 0; i < borders.size(); ++i) {
      params.Require(borders[i] == borders[i], "borders", "not contain NaN");
      params.Require(i == 0 || borders[i - 1] <= borders[i], "borders", "be in increasing order");
      params.Require(i < 2 || borders[i - 2] < borders[i], "borders",
                     "repeat a value at most twice");
    }
    // Padding to a power of two with +inf, which no value exceeds; NaN is cut back at the end.
    while (padded < borders.size()) padded *= 2, ++levels;
    table = borders;
    table.resize(padded, std::numeric_limits<float>::infinity());
    for (uint32_t i = 0; padded > kInRegister && i < kInRegister; ++i)
      pivots[i] = table[(i + 1) * (padded / kInRegister) - 1];
    if (padded <= kInRegister) {
      std::fill(std::begin(pivots), std::end(pivots), std::numeric_limits<float>::infinity());
      std::copy(table.begin(), table.end(), std::begin(pivots));
    }
  }

  void Reference(const TransformInputs& in, SparseColumn* out) const override {
    const DenseColumn& from = *in.dense[0];
    out->present = from.present;
    out->offsets.push_back(0);
    for (uint64_t row = 0; row < in.rows; ++row) {
      const float x = from.values[row];
      const auto bucket =
          x == x ? std::lower_bound(borders.begin(), borders.end(), x) : borders.end();
      if (from.present.Get(row)) out->values.push_back(bucket - borders.begin());
      out->offsets.push_back(static_cast<uint32_t>(out->values.size()));
    }
  }

  void Apply(const TransformInputs& in, SparseColumn* out, InstructionSet set) const override {
    const DenseColumn& from = *in.dense[0];
    ReserveLists(out, in.rows, from.present.count);
    out->present = from.present;
    if (from.present.count == in.rows) {
      OneIdPerRow(in.rows, out->offsets.data());
      return Find(from.values.data(), in.rows, out->values.data(), set);
    }
    Array<int64_t> buckets(in.rows);
    Find(from.values.data(), in.rows, buckets.data(), set);
    uint32_t used = 0;
    for (uint64_t row = 0; row < in.rows; ++row) {
      const bool present = from.present.Get(row);
      if (present) out->values[used] = buckets[row];
      used += present;
      out->offsets[row + 1] = used;
    }
  }

  // buckets[i] = number of borders below values[i].
  void Find(const float* values, size_t n, int64_t* buckets, InstructionSet set) const {
    size_t done = 0;
#if defined(HR_X86)
    if (set == InstructionSet::kAvx512) {
      for (; done < UnalignedHead(buckets, n); ++done) buckets[done] = FindOne(values[done]);
      values += done, buckets += done, n -= done;
      if (borders.size() <= kFew) return FewAvx512(values, n, buckets);
      if (borders.size() <= 16) return RegisterAvx512<4>(values, n, buckets);
      if (borders.size() <= 32) return RegisterAvx512<5>(values, n, buckets);
      if (borders.size() <= 64) return RegisterAvx512<6>(values, n, buckets);
      return GatherAvx512(values, n, buckets);
    }
    if (set == InstructionSet::kAvx2 && borders.size() <= kLinearAvx2)
      done = Avx2(values, n, buckets);
#endif
    (void)set;
    for (size_t i = done; i < n; ++i) buckets[i] = FindOne(values[i]);
  }

  // Binary search without branches over the padded table.
  int64_t FindOne(float x) const {
    uint32_t place = 0;
    for (uint32_t half = padded / 2; half > 0; half /= 2)
      place += !(x <= table[place + half - 1]) ? half : 0;
    place += !(x <= table[place]);
    return std::min<uint32_t>(place, static_cast<uint32_t>(borders.size()));
  }

#if defined(HR_X86)
  // 16 counts as 64-bit ids: each half of the vector is spread over one by a permutation, zeros
  // between.
  HR_AVX512 static HR_INLINE void Spread(__m512i buckets, __m512i* low, __m512i* high) {
    const __m512i pairs = _mm512_setr_epi32(0, 0, 1, 0, 2, 0, 3, 0, 4, 0, 5, 0, 6, 0, 7, 0);
    *low = _mm512_maskz_permutexvar_epi32(0x5555, pairs, buckets);
    *high = _mm512_maskz_permutexvar_epi32(0x5555, _mm512_add_epi32(pairs, _mm512_set1_epi32(8)),
                                           buckets);
  }

  HR_AVX512 static HR_INLINE void Store(__m512i buckets, int64_t* out, __mmask16 lanes) {
    __m512i low, high;
    Spread(buckets, &low, &high);
    _mm512_mask_storeu_epi64(out, static_cast<__mmask8>(lanes), low);
    _mm512_mask_storeu_epi64(out + 8, static_cast<__mmask8>(lanes >> 8), high);
  }

  // Which of up to 8 borders (the others +inf) are below x, counted: three steps of a search over
  // the first seven, whose borders are blended rather than looked up, and the last one. x NLE
  // border: above the border, or NaN.
  HR_AVX512 static HR_INLINE __m512i SearchFew(const __m512* border, __m512 x) {
    const __mmask16 above4 = _mm512_cmp_ps_mask(x, border[3], _CMP_NLE_UQ);
    const __mmask16 above2 =
        _mm512_cmp_ps_mask(x, _mm512_mask_mov_ps(border[1], above4, border[5]), _CMP_NLE_UQ);
    const __m512 low = _mm512_mask_mov_ps(border[0], above2, border[2]);
    const __m512 high = _mm512_mask_mov_ps(border[4], above2, border[6]);
    const __mmask16 above1 =
        _mm512_cmp_ps_mask(x, _mm512_mask_mov_ps(low, above4, high), _CMP_NLE_UQ);
    const __mmask16 last = _mm512_cmp_ps_mask(x, border[7], _CMP_NLE_UQ);
    const __m512i one = _mm512_set1_epi32(1);
    __m512i count = _mm512_maskz_mov_epi32(above4, _mm512_set1_epi32(4));
    count = _mm512_mask_add_epi32(count, above2, count, _mm512_set1_epi32(2));
    count = _mm512_mask_add_epi32(count, above1, count, one);
    return _mm512_mask_add_epi32(count, last, count, one);
  }

  HR_AVX512 void FewAvx512(const float* values, size_t n, int64_t* out) const {
    const __m512i size = _mm512_set1_epi32(static_cast<int>(borders.size()));
    __m512 border[kFew];
    for (uint32_t k = 0; k < kFew; ++k) border[k] = _mm512_set1_ps(pivots[k]);
    size_t i = 0;
    for (; i + 16 <= n; i += 16) {
      __m512i low, high;
      Spread(_mm512_min_epu32(SearchFew(border, _mm512_loadu_ps(values + i)), size), &low, &high);
      _mm512_storeu_si512(out + i, low);
      _mm512_storeu_si512(out + i + 8, high);
    }
    if (i == n) return;
    const __mmask16 lanes = FirstLanes16(n - i);
    const __m512 x = _mm512_maskz_loadu_ps(lanes, values + i);
    Store(_mm512_min_epu32(SearchFew(border, x), size), out + i, lanes);
  }

  // The border numbered `index` (< 64, or < 32, 16) of the register table.
  template <int kLevels>
  HR_AVX512 static HR_INLINE __m512 Look(const __m512* t, __m512i index) {
    if constexpr (kLevels == 4) return _mm512_permutexvar_ps(index, t[0]);
    const __m512 low = _mm512_permutex2var_ps(t[0], index, t[1]);
    if constexpr (kLevels == 5) return low;
    const __m512 high = _mm512_permutex2var_ps(t[2], index, t[3]);
    return _mm512_mask_mov_ps(low, _mm512_test_epi32_mask(index, _mm512_set1_epi32(32)), high);
  }

  // One step of the search: place += half where x is above border place + half - 1.
  HR_AVX512 static HR_INLINE __m512i Step(__m512i place, __m512 x, __m512 border, __m512i half) {
    return _mm512_mask_add_epi32(place, _mm512_cmp_ps_mask(x, border, _CMP_NLE_UQ), place, half);
  }

  template <int kLevels>
  HR_AVX512 static HR_INLINE __m512i SearchRegister(const __m512* t, __m512 x) {
    __m512i place = _mm512_setzero_si512();
    for (int level = kLevels - 1; level >= 0; --level) {
      const __m512i last = _mm512_set1_epi32((1 << level) - 1);
      place = Step(place, x, Look<kLevels>(t, _mm512_add_epi32(place, last)),
                   _mm512_set1_epi32(1 << level));
    }
    return place;
  }

  template <int kLevels>
  HR_AVX512 void RegisterAvx512(const float* values, size_t n, int64_t* out) const {
    __m512 t[4];
    for (int k = 0; k < 4; ++k) t[k] = _mm512_loadu_ps(pivots + 16 * k);
    const __m512i size = _mm512_set1_epi32(static_cast<int>(borders.size()));
    const __m512i one = _mm512_set1_epi32(1);
    for (size_t i = 0; i < n; i += 16) {
      const __mmask16 lanes = FirstLanes16(n - i);
      const __m512 x = _mm512_maskz_loadu_ps(lanes, values + i);
      __m512i place = SearchRegister<kLevels>(t, x);
      place = Step(place, x, Look<kLevels>(t, place), one);
      Store(_mm512_min_epu32(place, size), out + i, lanes);
    }
  }

  // Six levels over 64 pivots in registers, the rest gathered. Four vectors at a time hide the
  // gathers' latency.
  HR_AVX512 void GatherAvx512(const float* values, size_t n, int64_t* out) const {
    constexpr size_t kVectors = 4;
    __m512 t[4];
    for (int k = 0; k < 4; ++k) t[k] = _mm512_loadu_ps(pivots + 16 * k);
    const __m512i size = _mm512_set1_epi32(static_cast<int>(borders.size()));
    const __m512i one = _mm512_set1_epi32(1);
    const int rest = static_cast<int>(levels) - 6;
    for (size_t i = 0; i < n; i += 16 * kVectors) {
      __m512 x[kVectors];
      __m512i place[kVectors];
      for (size_t v = 0; v < kVectors; ++v) {
        const size_t first = std::min(i + 16 * v, n);
        x[v] = _mm512_maskz_loadu_ps(FirstLanes16(n - first), values + first);
        place[v] = _mm512_slli_epi32(SearchRegister<6>(t, x[v]), static_cast<unsigned>(rest));
      }
      for (int level = rest - 1; level >= 0; --level) {
        const __m512i last = _mm512_set1_epi32((1 << level) - 1);
        const __m512i half = _mm512_set1_epi32(1 << level);
        for (size_t v = 0; v < kVectors; ++v) {
          const __m512 border =
              _mm512_i32gather_ps(_mm512_add_epi32(place[v], last), table.data(), 4);
          place[v] = Step(place[v], x[v], border, half);
        }
      }
      for (size_t v = 0; v < kVectors; ++v) {
        place[v] = Step(place[v], x[v], _mm512_i32gather_ps(place[v], table.data(), 4), one);
        const size_t first = std::min(i + 16 * v, n);
        Store(_mm512_min_epu32(place[v], size), out + first, FirstLanes16(n - first));
      }
    }
  }

  HR_AVX2 static HR_INLINE void Store(__m256i buckets, int64_t* out) {
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(out),
                        _mm256_cvtepu32_epi64(_mm256_castsi256_si128(buckets)));
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(out + 4),
                        _mm256_cvtepu32_epi64(_mm256_extracti128_si256(buckets, 1)));
  }

  // Comparing with every border; for more borders the scalar search is faster than AVX2's gathers.
  HR_AVX2 size_t Avx2(const float* values, size_t n, int64_t* out) const {
    size_t i = 0;
    for (; i + 8 <= n; i += 8) {
      const __m256 x = _mm256_loadu_ps(values + i);
      __m256i count = _mm256_setzero_si256();
      for (const float border : borders) {
        const __m256 above = _mm256_cmp_ps(x, _mm256_set1_ps(border), _CMP_NLE_UQ);
        count = _mm256_sub_epi32(count, _mm256_castps_si256(above));
      }
      Store(count, out + i);
    }
    return i;
  }
#endif

  std::vector<float> borders;
  std::vector<float> table;        // borders padded with +inf to `padded` = 2^levels entries
  float pivots[kInRegister] = {};  // the table, or every (padded / 64)-th entry of it
  uint32_t padded = 1, levels = 0;
};

HR_TRANSFORM(
    "bucketize", Bucketize,
    {.summary = "Replaces each value by the number of borders below it.",
     .semantics =
         "`std::lower_bound`: a value equal to a border gets the lower bucket. NaN gets the "
         "last bucket, as in TorchArrow. The result is a list of one id per row that has "
         "the feature.",
     .cost = "per value, compute-bound to 64 borders, gathers beyond",
     .inputs = {InputKind::kDense},
     .max_inputs = 1,
     .output = OutputKind::kSparse,
     .params = {{"borders", "reals", "", "in increasing order; a value may repeat at most twice"}},
     .examples = {{"borders=2,5,10", "2 3 10 11 - nan", "0 | 1 | 2 | 3 | - | 3"},
                  {"borders=0,2,3,5,500,1000", "1.5 2.5 3.5 4.5 5.5 6.5", "1 | 2 | 3 | 3 | 4 | 4"},
                  {"borders=1,2,2,3,3", "1.5 -inf inf", "1 | 0 | 5"}},
     .use = IdUse::kEach,
     .make = nullptr});

}  // namespace
}  // namespace headrace::reader
