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

HR_TARGET_AVX512 bool WalkAvx512(const uint8_t* begin, const uint8_t* end, uint8_t width,
                                 std::span<const uint32_t> lengths, uint64_t* starts,
                                 uint64_t* changed) {
  std::fill_n(changed, (lengths.size() + 63) / 64, 0);
  const uint8_t* at = begin;
  size_t last_size = 0;
  for (size_t i = 0; i < lengths.size(); ++i) {
    starts[i] = static_cast<uint64_t>(at - begin);
    const auto left = static_cast<size_t>(end - at);
    if (i > 0 && lengths[i] == lengths[i - 1] && last_size <= left) {
      const uint8_t* before = at - last_size;
      size_t done = 0;
      for (; done < last_size; done += 64) {
        const size_t rest = last_size - done;
        const __mmask64 lanes = rest >= 64 ? ~__mmask64{0} : (__mmask64{1} << rest) - 1;
        if (_mm512_mask_cmpneq_epu8_mask(lanes, _mm512_maskz_loadu_epi8(lanes, at + done),
                                         _mm512_maskz_loadu_epi8(lanes, before + done)) != 0)
          break;
      }
      if (done >= last_size) {
        at += last_size;
        continue;
      }
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

}  // namespace headrace::reader::dwrf
