#include "reader/dwrf/decode/varint_simd.h"

#include <algorithm>
#include <bit>
#include <cstring>

#if defined(__x86_64__)
#if defined(__GNUC__) && !defined(__clang__)
// g++ 12 takes _mm512_undefined_epi32 in its own header for a use of an uninitialised value.
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#endif
#include <immintrin.h>
#endif

namespace headrace::reader::dwrf {
namespace {

constexpr int kMaxVarintBytes = 10;

template <bool kZigzag>
int64_t Finish(uint64_t value) {
  return kZigzag ? UndoZigzag(value) : static_cast<int64_t>(value);
}

template <bool kZigzag>
const uint8_t* DecodeScalar(const uint8_t* p, const uint8_t* end, size_t count, int64_t* out) {
  for (size_t i = 0; i < count; ++i) {
    uint64_t value = 0;
    p = DecodeVarint(p, end, &value);
    if (p == nullptr) return nullptr;
    out[i] = Finish<kZigzag>(value);
  }
  return p;
}

#if defined(__x86_64__)

#define HR_BMI2 __attribute__((target("bmi,bmi2,lzcnt,popcnt,avx2")))
#define HR_AVX512        \
  __attribute__((target( \
      "bmi,bmi2,lzcnt,popcnt,avx2,avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi,avx512vbmi2")))

constexpr uint64_t kHighBits = 0x8080808080808080u, kLowBits = 0x7f7f7f7f7f7f7f7fu;

// One value at p, whose bytes may reach past `end` by less than 10; the caller compares the
// returned position with `end`. Null for a value of more than 10 bytes.
template <bool kZigzag>
HR_BMI2 inline const uint8_t* DecodeOneBmi2(const uint8_t* p, int64_t* out) {
  uint64_t word;
  std::memcpy(&word, p, 8);
  const uint64_t terminators = ~word & kHighBits;
  if (terminators != 0) [[likely]] {
    const uint64_t used = terminators ^ (terminators - 1);
    *out = Finish<kZigzag>(_pext_u64(word, used & kLowBits));
    return p + (_tzcnt_u64(terminators) >> 3) + 1;
  }
  uint64_t value = _pext_u64(word, kLowBits) | static_cast<uint64_t>(p[8] & 0x7f) << 56;
  if ((p[8] & 0x80) == 0) {
    *out = Finish<kZigzag>(value);
    return p + 9;
  }
  if ((p[9] & 0x80) != 0) return nullptr;
  *out = Finish<kZigzag>(value | static_cast<uint64_t>(p[9] & 1) << 63);
  return p + 10;
}

template <bool kZigzag>
HR_BMI2 const uint8_t* DecodeBmi2(const uint8_t* p, const uint8_t* end, size_t count,
                                  int64_t* out) {
  const __m256i one = _mm256_set1_epi64x(1);
  size_t i = 0;
  while (i < count) {
    // Eight one-byte values at once: the common case of small ids.
    if (count - i >= 8 && end - p >= 8) {
      uint64_t word;
      std::memcpy(&word, p, 8);
      if ((word & kHighBits) == 0) {
        for (int half = 0; half < 2; ++half) {
          __m256i wide = _mm256_cvtepu8_epi64(
              _mm_cvtsi32_si128(static_cast<int>(word >> (32 * half) & 0xffffffffu)));
          if (kZigzag) {
            wide = _mm256_xor_si256(
                _mm256_srli_epi64(wide, 1),
                _mm256_sub_epi64(_mm256_setzero_si256(), _mm256_and_si256(wide, one)));
          }
          _mm256_storeu_si256(reinterpret_cast<__m256i*>(out + i + 4 * half), wide);
        }
        i += 8;
        p += 8;
        continue;
      }
    }
    const size_t stop = std::min(count, i + 8);
    for (; i < stop; ++i) {
      p = DecodeOneBmi2<kZigzag>(p, out + i);
      if (p == nullptr || p > end) return nullptr;
    }
  }
  return p;
}

template <bool kZigzag>
HR_AVX512 inline __m512i FinishAvx512(__m512i value) {
  if (!kZigzag) return value;
  const __m512i sign =
      _mm512_sub_epi64(_mm512_setzero_si512(), _mm512_and_si512(value, _mm512_set1_epi64(1)));
  return _mm512_xor_si512(_mm512_srli_epi64(value, 1), sign);
}

// 64 one-byte values.
template <bool kZigzag>
HR_AVX512 inline void WidenBytes(const uint8_t* p, int64_t* out) {
  for (int k = 0; k < 8; ++k) {
    const __m512i wide =
        _mm512_cvtepu8_epi64(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(p + 8 * k)));
    _mm512_storeu_si512(out + 8 * k, FinishAvx512<kZigzag>(wide));
  }
}

// Eight values at once from 128 bytes: gather the bytes of each into a lane, drop the high bits,
// pack 7-bit groups.
class LanePacker {
 public:
  // `start` and `length` of each lane's value; `has_long`: some value has more than 8 bytes.
  template <bool kZigzag>
  HR_AVX512 __m512i Pack(__m512i block, __m512i next, __m512i start, __m512i length,
                         bool has_long) const {
    const __m512i spread_start = _mm512_set4_epi32(0x08080808, 0x08080808, 0, 0);
    const __m512i index = _mm512_add_epi8(_mm512_shuffle_epi8(start, spread_start),
                                          _mm512_set1_epi64(0x0706050403020100ll));
    __m512i value =
        _mm512_and_si512(_mm512_permutex2var_epi8(block, index, next), _mm512_set1_epi8(0x7f));
    const __m512i past_value =
        _mm512_sllv_epi64(_mm512_set1_epi64(-1), _mm512_slli_epi64(length, 3));
    value = _mm512_andnot_si512(past_value, value);
    value = _mm512_maddubs_epi16(_mm512_set1_epi16(static_cast<short>(0x8001)),
                                 value);                              // bytes {1, 128}
    value = _mm512_madd_epi16(value, _mm512_set1_epi32(0x40000001));  // words {1, 16384}
    value = _mm512_or_si512(_mm512_and_si512(value, _mm512_set1_epi64(0xffffffffll)),
                            _mm512_slli_epi64(_mm512_srli_epi64(value, 32), 28));
    if (has_long) value = _mm512_or_si512(value, LastBytes(block, next, index, length));
    return FinishAvx512<kZigzag>(value);
  }

 private:
  // Bits 56 to 63, of the ninth and tenth byte.
  HR_AVX512 static __m512i LastBytes(__m512i block, __m512i next, __m512i index, __m512i length) {
    const __m512i bytes =
        _mm512_permutex2var_epi8(block, _mm512_add_epi8(index, _mm512_set1_epi8(8)), next);
    const __mmask8 nine = _mm512_cmpgt_epi64_mask(length, _mm512_set1_epi64(8));
    const __mmask8 ten = _mm512_cmpgt_epi64_mask(length, _mm512_set1_epi64(9));
    return _mm512_or_si512(
        _mm512_maskz_slli_epi64(nine, _mm512_and_si512(bytes, _mm512_set1_epi64(0x7f)), 56),
        _mm512_maskz_slli_epi64(ten, _mm512_srli_epi64(bytes, 8), 63));
  }
};

// Ten continuation bytes in a row: a value too long.
inline bool HasTooLongValue(uint64_t continuation, uint64_t eight_in_a_row) {
  const uint64_t two = continuation & (continuation >> 1);
  return (eight_in_a_row & (two >> 8)) != 0;
}

template <bool kZigzag>
HR_AVX512 const uint8_t* DecodeAvx512(const uint8_t* p, const uint8_t* end, size_t count,
                                      int64_t* out) {
  const __m512i iota = _mm512_set_epi8(
      63, 62, 61, 60, 59, 58, 57, 56, 55, 54, 53, 52, 51, 50, 49, 48, 47, 46, 45, 44, 43, 42, 41,
      40, 39, 38, 37, 36, 35, 34, 33, 32, 31, 30, 29, 28, 27, 26, 25, 24, 23, 22, 21, 20, 19, 18,
      17, 16, 15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0);
  const LanePacker packer;
  alignas(64) uint8_t starts_bytes[128], length_bytes[128];
  while (count > 0) {
    const __m512i block = _mm512_loadu_si512(p);
    uint64_t terminators = ~_cvtmask64_u64(_mm512_movepi8_mask(block));
    const size_t room = static_cast<size_t>(end - p);
    if (room < 64) terminators = _bzhi_u64(terminators, static_cast<unsigned>(room));
    if (terminators == ~uint64_t{0} && count >= 64) {
      WidenBytes<kZigzag>(p, out);
      out += 64, p += 64, count -= 64;
      continue;
    }
    unsigned take = static_cast<unsigned>(_mm_popcnt_u64(terminators));
    if (take == 0) return nullptr;
    if (take > count) {
      take = static_cast<unsigned>(count);
      terminators = _pdep_u64((uint64_t{1} << take) - 1, terminators);
    }
    const unsigned used = 64 - static_cast<unsigned>(_lzcnt_u64(terminators));
    const uint64_t continuation = _bzhi_u64(~terminators, used);
    const uint64_t two = continuation & (continuation >> 1), four = two & (two >> 2);
    const uint64_t eight = four & (four >> 4);
    if (eight != 0 && HasTooLongValue(continuation, eight)) return nullptr;
    const bool has_long = eight != 0;
    const __m512i next = _mm512_loadu_si512(p + 64);
    const __m512i ends = _mm512_maskz_compress_epi8(terminators, iota);
    const __m512i starts = _mm512_maskz_compress_epi8((terminators << 1) | 1, iota);
    const __m512i lengths = _mm512_add_epi8(_mm512_sub_epi8(ends, starts), _mm512_set1_epi8(1));
    const __m512i first =
        packer.Pack<kZigzag>(block, next, _mm512_cvtepu8_epi64(_mm512_castsi512_si128(starts)),
                             _mm512_cvtepu8_epi64(_mm512_castsi512_si128(lengths)), has_long);
    _mm512_storeu_si512(out, first);
    if (take > 8) {
      _mm512_store_si512(starts_bytes, starts);
      _mm512_store_si512(length_bytes, lengths);
      for (unsigned k = 8; k < take; k += 8) {
        const __m512i start = _mm512_cvtepu8_epi64(
            _mm_loadl_epi64(reinterpret_cast<const __m128i*>(starts_bytes + k)));
        const __m512i length = _mm512_cvtepu8_epi64(
            _mm_loadl_epi64(reinterpret_cast<const __m128i*>(length_bytes + k)));
        _mm512_storeu_si512(out + k, packer.Pack<kZigzag>(block, next, start, length, has_long));
      }
    }
    out += take, p += used, count -= take;
  }
  return p;
}

#endif

template <bool kZigzag>
const uint8_t* Dispatch(const uint8_t* p, const uint8_t* end, size_t count, int64_t* out,
                        InstructionSet set) {
#if defined(__x86_64__)
  if (set == InstructionSet::kAvx512) return DecodeAvx512<kZigzag>(p, end, count, out);
  if (set == InstructionSet::kAvx2) return DecodeBmi2<kZigzag>(p, end, count, out);
#else
  (void)set;
#endif
  return DecodeScalar<kZigzag>(p, end, count, out);
}

}  // namespace

const uint8_t* DecodeVarint(const uint8_t* begin, const uint8_t* end, uint64_t* value) {
  uint64_t result = 0;
  const uint8_t* limit = end - begin > kMaxVarintBytes ? begin + kMaxVarintBytes : end;
  int shift = 0;
  for (const uint8_t* p = begin; p < limit; shift += 7) {
    const uint8_t byte = *p++;
    result |= static_cast<uint64_t>(byte & 0x7f) << shift;
    if ((byte & 0x80) == 0) {
      *value = result;
      return p;
    }
  }
  return nullptr;
}

const uint8_t* DecodeVarints(const uint8_t* begin, const uint8_t* end, size_t count, bool zigzag,
                             int64_t* out, InstructionSet set) {
  return zigzag ? Dispatch<true>(begin, end, count, out, set)
                : Dispatch<false>(begin, end, count, out, set);
}

}  // namespace headrace::reader::dwrf
