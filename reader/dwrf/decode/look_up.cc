#include "reader/dwrf/decode/look_up.h"

#if defined(__x86_64__)
#if defined(__GNUC__) && !defined(__clang__)
// As in varint_simd.cc.
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#endif
#include <immintrin.h>
#endif

namespace headrace::reader::dwrf {
namespace {

// `bad` is set where an index is too large; entry 0 is then taken, which exists: without entries
// the caller does not come here.
inline int64_t LookUpOne(std::span<const int64_t> entries, bool is_index, int unused_bits,
                         int64_t value, bool* bad) {
  const auto literal =
      static_cast<int64_t>(static_cast<uint64_t>(value) << unused_bits) >> unused_bits;
  const uint64_t index = is_index ? static_cast<uint64_t>(value) : 0;
  *bad |= index >= entries.size();
  const int64_t entry = entries[index < entries.size() ? index : 0];
  return is_index ? entry : literal;
}

bool LookUpScalar(std::span<const int64_t> entries, const uint64_t* inside, int unused_bits,
                  int64_t* values, size_t begin, size_t count) {
  bool bad = false;
  for (size_t i = begin; i < count; ++i)
    values[i] = LookUpOne(entries, inside == nullptr || (inside[i >> 6] >> (i & 63) & 1) != 0,
                          unused_bits, values[i], &bad);
  return !bad;
}

#if defined(__x86_64__)
__attribute__((target("avx512f,avx512bw,avx512dq,avx512vl"))) bool LookUpAvx512(
    std::span<const int64_t> entries, const uint64_t* inside, int unused_bits, int64_t* values,
    size_t count) {
  const __m512i size = _mm512_set1_epi64(static_cast<int64_t>(entries.size()));
  const __m512i unused = _mm512_set1_epi64(unused_bits);
  const auto* bytes = reinterpret_cast<const uint8_t*>(inside);
  unsigned bad = 0;
  size_t i = 0;
  for (; i + 8 <= count; i += 8) {
    const __m512i value = _mm512_loadu_si512(values + i);
    const auto is_index = static_cast<__mmask8>(bytes == nullptr ? 0xff : bytes[i >> 3]);
    const __mmask8 good = _mm512_mask_cmplt_epu64_mask(is_index, value, size);
    bad |= static_cast<unsigned>(good ^ is_index);
    const __m512i literal = _mm512_srav_epi64(_mm512_sllv_epi64(value, unused), unused);
    _mm512_storeu_si512(values + i,
                        _mm512_mask_i64gather_epi64(literal, good, value, entries.data(), 8));
  }
  return LookUpScalar(entries, inside, unused_bits, values, i, count) && bad == 0;
}
#endif

}  // namespace

bool LookUpIndices(std::span<const int64_t> entries, const uint64_t* inside, int unused_bits,
                   int64_t* values, size_t count, InstructionSet set) {
  static const int64_t kNoEntry[1] = {};
  if (entries.empty()) {
    // Only literals are right.
    for (size_t i = 0; i < count; ++i) {
      if (inside == nullptr || (inside[i >> 6] >> (i & 63) & 1) != 0) return false;
    }
    entries = {kNoEntry, 1};
  }
#if defined(__x86_64__)
  if (set == InstructionSet::kAvx512)
    return LookUpAvx512(entries, inside, unused_bits, values, count);
#else
  (void)set;
#endif
  return LookUpScalar(entries, inside, unused_bits, values, 0, count);
}

}  // namespace headrace::reader::dwrf
