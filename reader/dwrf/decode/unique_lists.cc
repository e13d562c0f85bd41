#include "reader/dwrf/decode/unique_lists.h"

#include <algorithm>
#include <bit>
#include <cstring>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace headrace::reader::dwrf {
namespace {

// The two steps of the walk. Each kernel has its own; a repeated list costs the comparison alone,
// as its bytes then hold as many integers as those before.
struct Scalar {
  static bool Equal(const uint8_t* a, const uint8_t* b, size_t size) {
    return size == 0 || std::memcmp(a, b, size) == 0;
  }
  // Behind `count` varints, or null.
  static const uint8_t* Skip(const uint8_t* at, const uint8_t* end, size_t count) {
    while (count > 0) {
      uint64_t word;
      if (count >= 8 && end - at >= 8) {
        std::memcpy(&word, at, 8);
        count -= static_cast<size_t>(std::popcount(~word & 0x8080808080808080u));
        at += 8;
        continue;
      }
      if (at == end) return nullptr;
      count -= *at++ < 0x80;
    }
    return at;
  }
};

template <typename Kernel>
bool Walk(const uint8_t* begin, const uint8_t* end, uint8_t width,
          std::span<const uint32_t> lengths, uint64_t* starts, uint64_t* changed) {
  std::fill_n(changed, (lengths.size() + 63) / 64, 0);
  const uint8_t* at = begin;
  size_t last_size = 0;
  for (size_t i = 0; i < lengths.size(); ++i) {
    starts[i] = static_cast<uint64_t>(at - begin);
    const auto left = static_cast<size_t>(end - at);
    if (i > 0 && lengths[i] == lengths[i - 1] && last_size <= left &&
        Kernel::Equal(at, at - last_size, last_size)) {
      at += last_size;
      continue;
    }
    changed[i >> 6] |= uint64_t{1} << (i & 63);
    if (width > 0) {
      last_size = size_t{lengths[i]} * width;
      if (last_size > left) return false;
      at += last_size;
    } else {
      const uint8_t* next = lengths[i] == 0 ? at : Kernel::Skip(at, end, lengths[i]);
      if (next == nullptr && lengths[i] > 0) return false;
      last_size = static_cast<size_t>(next - at);
      at = next;
    }
  }
  starts[lengths.size()] = static_cast<uint64_t>(at - begin);
  return true;
}

#if defined(__x86_64__)

#define HR_TARGET_AVX512 \
  __attribute__((target("avx2,bmi,bmi2,popcnt,lzcnt,avx512f,avx512bw,avx512dq,avx512vl")))

// How far ahead of a comparison its bytes are fetched: streams are larger than the caches near the
// core, and a repeated list takes less time than it takes to come.
constexpr size_t kAhead = 1024;

HR_TARGET_AVX512 inline __m512i DifferenceAvx512(const uint8_t* a, const uint8_t* b) {
  __builtin_prefetch(a + kAhead);
  return _mm512_xor_si512(_mm512_loadu_si512(a), _mm512_loadu_si512(b));
}

// Four blocks for each branch; the last block overlaps the one before.
HR_TARGET_AVX512 inline bool EqualAvx512(const uint8_t* a, const uint8_t* b, size_t size) {
  if (size < 64) {
    const __mmask64 lanes = (__mmask64{1} << size) - 1;
    return _mm512_mask_cmpneq_epi8_mask(lanes, _mm512_maskz_loadu_epi8(lanes, a),
                                        _mm512_maskz_loadu_epi8(lanes, b)) == 0;
  }
  const uint8_t* const last = a + size - 64;
  const ptrdiff_t back = b - a;
  __m512i difference = DifferenceAvx512(last, last + back);
  for (; last - a >= 256; a += 256) {
    difference = _mm512_or_si512(difference, DifferenceAvx512(a, a + back));
    difference = _mm512_or_si512(difference, DifferenceAvx512(a + 64, a + 64 + back));
    difference = _mm512_or_si512(difference, DifferenceAvx512(a + 128, a + 128 + back));
    difference = _mm512_or_si512(difference, DifferenceAvx512(a + 192, a + 192 + back));
    if (_mm512_test_epi64_mask(difference, difference) != 0) return false;
  }
  for (; a < last; a += 64) difference = _mm512_or_si512(difference, DifferenceAvx512(a, a + back));
  return _mm512_test_epi64_mask(difference, difference) == 0;
}

HR_TARGET_AVX512 bool WalkAvx512(const uint8_t* begin, const uint8_t* end, uint8_t width,
                                 std::span<const uint32_t> lengths, uint64_t* starts,
                                 uint64_t* changed) {
  std::fill_n(changed, (lengths.size() + 63) / 64, 0);
  const uint8_t* at = begin;
  size_t last_size = 0;
  for (size_t i = 0; i < lengths.size(); ++i) {
    starts[i] = static_cast<uint64_t>(at - begin);
    const auto left = static_cast<size_t>(end - at);
    if (i > 0 && lengths[i] == lengths[i - 1] && last_size <= left &&
        EqualAvx512(at, at - last_size, last_size)) {
      at += last_size;
      continue;
    }
    changed[i >> 6] |= uint64_t{1} << (i & 63);
    const uint8_t* const first = at;
    if (width > 0) {
      if (size_t{lengths[i]} * width > left) return false;
      at += size_t{lengths[i]} * width;
    } else {
      for (size_t count = lengths[i]; count > 0;) {
        const auto rest = static_cast<size_t>(end - at);
        if (rest == 0) return false;
        const __mmask64 lanes = rest >= 64 ? ~__mmask64{0} : (__mmask64{1} << rest) - 1;
        const uint64_t last_bytes =
            ~_mm512_movepi8_mask(_mm512_maskz_loadu_epi8(lanes, at)) & lanes;
        const auto here = static_cast<size_t>(_mm_popcnt_u64(last_bytes));
        if (here < count) {
          count -= here;
          at += std::min<size_t>(rest, 64);
          continue;
        }
        at += _tzcnt_u64(_pdep_u64(uint64_t{1} << (count - 1), last_bytes)) + 1;
        count = 0;
      }
    }
    last_size = static_cast<size_t>(at - first);
  }
  starts[lengths.size()] = static_cast<uint64_t>(at - begin);
  return true;
}

#endif

}  // namespace

bool FindChangedLists(const uint8_t* begin, const uint8_t* end, uint8_t width,
                      std::span<const uint32_t> lengths, uint64_t* starts, uint64_t* changed,
                      InstructionSet set) {
#if defined(__x86_64__)
  if (set == InstructionSet::kAvx512)
    return WalkAvx512(begin, end, width, lengths, starts, changed);
#endif
  (void)set;
  return Walk<Scalar>(begin, end, width, lengths, starts, changed);
}

bool DecodeLists(const uint8_t* begin, std::span<const uint32_t> lists, const uint32_t* lengths,
                 const uint64_t* starts, IntegerFormat format, int64_t* out, InstructionSet set) {
  constexpr size_t kListsAhead = 4, kMostLines = 8;
  const auto fetch = [&](size_t i) {
    if (i >= lists.size()) return;
    const uint8_t* const at = begin + starts[lists[i]];
    const uint64_t size = starts[lists[i] + 1] - starts[lists[i]];
    for (uint64_t line = 0; line < std::min<uint64_t>(size, 64 * kMostLines); line += 64)
      __builtin_prefetch(at + line);
  };
  for (size_t i = 0; i < std::min(lists.size(), kListsAhead); ++i) fetch(i);
  for (size_t i = 0; i < lists.size();) {
    const uint32_t first = lists[i];
    uint32_t end = first;
    size_t count = 0;
    for (; i < lists.size() && lists[i] == end; ++i) {
      fetch(i + kListsAhead);
      count += lengths[end++];
    }
    if (count == 0) continue;
    if (DecodePlain(begin + starts[first], begin + starts[end], count, format, out, set) == nullptr)
      return false;
    out += count;
  }
  return true;
}

}  // namespace headrace::reader::dwrf
