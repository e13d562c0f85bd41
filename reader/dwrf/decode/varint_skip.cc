#include "reader/dwrf/decode/varint_skip.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace headrace::reader::dwrf {
namespace {

const uint8_t* SkipScalar(const uint8_t* p, const uint8_t* end, size_t count) {
  for (; count > 0; ++p) {
    if (p == end) return nullptr;
    count -= (*p & 0x80) == 0;
  }
  return p;
}

#if defined(__x86_64__)

#define HR_SKIP_AVX2 __attribute__((target("avx2,bmi,bmi2,popcnt")))
#define HR_SKIP_AVX512 __attribute__((target("avx512f,avx512bw,bmi,bmi2,popcnt")))

// Behind the `count`-th set bit of `terminators`, which has that many.
HR_SKIP_AVX2 inline const uint8_t* Behind(const uint8_t* p, uint64_t terminators, size_t count) {
  return p + _tzcnt_u64(_pdep_u64(uint64_t{1} << (count - 1), terminators)) + 1;
}

HR_SKIP_AVX2 const uint8_t* SkipAvx2(const uint8_t* p, const uint8_t* end, size_t count) {
  while (end - p >= 64) {
    const __m256i low = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p));
    const __m256i high = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p + 32));
    const uint64_t terminators =
        ~(static_cast<uint64_t>(static_cast<uint32_t>(_mm256_movemask_epi8(high))) << 32 |
          static_cast<uint32_t>(_mm256_movemask_epi8(low)));
    const auto ends = static_cast<size_t>(_mm_popcnt_u64(terminators));
    if (ends >= count) return count == 0 ? p : Behind(p, terminators, count);
    count -= ends;
    p += 64;
  }
  return SkipScalar(p, end, count);
}

HR_SKIP_AVX512 const uint8_t* SkipAvx512(const uint8_t* p, const uint8_t* end, size_t count) {
  for (; end - p > 0; p += 64) {
    uint64_t terminators = ~_cvtmask64_u64(_mm512_movepi8_mask(_mm512_loadu_si512(p)));
    if (end - p < 64) terminators = _bzhi_u64(terminators, static_cast<unsigned>(end - p));
    const auto ends = static_cast<size_t>(_mm_popcnt_u64(terminators));
    if (ends >= count) return count == 0 ? p : Behind(p, terminators, count);
    count -= ends;
  }
  return count == 0 ? end : nullptr;
}

#endif

}  // namespace

const uint8_t* SkipVarints(const uint8_t* begin, const uint8_t* end, size_t count,
                           InstructionSet set) {
#if defined(__x86_64__)
  if (set == InstructionSet::kAvx512) return SkipAvx512(begin, end, count);
  if (set == InstructionSet::kAvx2) return SkipAvx2(begin, end, count);
#else
  (void)set;
#endif
  return SkipScalar(begin, end, count);
}

}  // namespace headrace::reader::dwrf
