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

// Where the last value that ends in the kBytes bytes at p ends, if that is in the last 16 of them;
// else something else: then a value has more than 10 bytes. Where the next block begins hangs on
// this alone, and so does how soon it can be begun: the way through a vector's mask takes longer.
template <unsigned kBytes>
HR_BMI2 inline unsigned LastEnd(const uint8_t* p) {
  uint64_t last, before;
  std::memcpy(&last, p + kBytes - 8, 8);
  std::memcpy(&before, p + kBytes - 16, 8);
  const uint64_t open = _lzcnt_u64(~last & kHighBits) >> 3;  // 8: all of them
  const uint64_t open_before = _lzcnt_u64(~before & kHighBits) >> 3;
  return static_cast<unsigned>(kBytes - open - (open_before & (0 - (open >> 3))));
}

// Ten continuation bytes in a row: a value too long.
inline bool HasTooLongValue(uint64_t continuation, uint64_t eight_in_a_row) {
  const uint64_t two = continuation & (continuation >> 1);
  return (eight_in_a_row & (two >> 8)) != 0;
}

// 4 * kFours one-byte values.
template <bool kZigzag, int kFours>
HR_BMI2 inline void WidenFours(const uint8_t* p, int64_t* out) {
  const __m256i one = _mm256_set1_epi64x(1);
  for (int four = 0; four < kFours; ++four) {
    int bytes;
    std::memcpy(&bytes, p + 4 * four, 4);
    __m256i wide = _mm256_cvtepu8_epi64(_mm_cvtsi32_si128(bytes));
    if (kZigzag) {
      wide =
          _mm256_xor_si256(_mm256_srli_epi64(wide, 1),
                           _mm256_sub_epi64(_mm256_setzero_si256(), _mm256_and_si256(wide, one)));
    }
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(out + 4 * four), wide);
  }
}

// The values that end where `terminators` has a bit, of at most 10 bytes, or 8 unless kLong.
template <bool kZigzag, bool kLong>
HR_BMI2 inline void ExtractValues(const uint8_t* p, uint32_t terminators, int64_t* out) {
  for (unsigned begin = 0; terminators != 0; terminators = _blsr_u32(terminators)) {
    const unsigned end = _tzcnt_u32(terminators) + 1, bits = 8 * (end - begin);
    uint64_t word;
    std::memcpy(&word, p + begin, 8);
    uint64_t value = _pext_u64(_bzhi_u64(word, bits), kLowBits);
    if (kLong) {
      uint16_t rest;
      std::memcpy(&rest, p + begin + 8, 2);
      value |= _pext_u64(_bzhi_u64(rest, bits > 64 ? bits - 64 : 0), 0x017f) << 56;
    }
    *out++ = Finish<kZigzag>(value);
    begin = end;
  }
}

template <bool kZigzag>
HR_BMI2 const uint8_t* DecodeBmi2(const uint8_t* p, const uint8_t* end, size_t count,
                                  int64_t* out) {
  while (end - p >= 32) {
    const __m256i block = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p));
    const uint32_t terminators = ~static_cast<uint32_t>(_mm256_movemask_epi8(block));
    const auto take = static_cast<unsigned>(_mm_popcnt_u32(terminators));
    if (terminators == ~uint32_t{0} && count >= 32) {
      WidenFours<kZigzag, 8>(p, out);
      out += 32, p += 32, count -= 32;
      continue;
    }
    if (take >= count) break;  // what follows the last value may be anything
    const unsigned used = LastEnd<32>(p);
    if (used != 32 - _lzcnt_u32(terminators)) return nullptr;
    const uint32_t continuation = _bzhi_u32(~terminators, used);
    const uint32_t two = continuation & (continuation >> 1), four = two & (two >> 2);
    const uint32_t eight = four & (four >> 4);
    if (eight == 0) {
      ExtractValues<kZigzag, false>(p, terminators, out);
    } else {
      if (HasTooLongValue(continuation, eight)) return nullptr;
      ExtractValues<kZigzag, true>(p, terminators, out);
    }
    out += take, p += used, count -= take;
  }
  size_t i = 0;
  while (i < count) {
    // Eight one-byte values at once: the common case of small ids.
    if (count - i >= 8 && end - p >= 8) {
      uint64_t word;
      std::memcpy(&word, p, 8);
      if ((word & kHighBits) == 0) {
        WidenFours<kZigzag, 2>(p, out + i);
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
#pragma GCC unroll 8
  for (int k = 0; k < 8; ++k) {
    const __m512i wide =
        _mm512_cvtepu8_epi64(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(p + 8 * k)));
    _mm512_storeu_si512(out + 8 * k, FinishAvx512<kZigzag>(wide));
  }
}

// What follows the lowest high bit of a lane that is 0, which ends the lane's value, becomes 0; and
// so do the high bits. `stop` has the high bits that are 0; a lane without any is kept whole.
HR_AVX512 inline __m512i KeepValue(__m512i bytes, __m512i stop, __m512i stop_minus_one) {
  constexpr int kAndXor = 0x60;  // a & (b ^ c)
  return _mm512_and_si512(_mm512_ternarylogic_epi64(bytes, stop, stop_minus_one, kAndXor),
                          _mm512_set1_epi8(0x7f));
}

// Pairs of 7-bit groups, then pairs of these: 28 bits in each lane of 32.
HR_AVX512 inline __m512i PackGroups(__m512i groups) {
  const __m512i pairs = _mm512_maddubs_epi16(_mm512_set1_epi16(static_cast<short>(0x8001)),
                                             groups);              // bytes {1, 128}
  return _mm512_madd_epi16(pairs, _mm512_set1_epi32(0x40000001));  // words {1, 16384}
}

// Sixteen values at once, each of at most 4 bytes and within `block`, to out[0, 16). `starts`:
// where they begin in it.
template <bool kZigzag>
HR_AVX512 inline void UnpackShort(__m512i block, const uint8_t* starts, int64_t* out) {
  const __m512i spread =
      _mm512_set_epi32(0x0f0f0f0f, 0x0e0e0e0e, 0x0d0d0d0d, 0x0c0c0c0c, 0x0b0b0b0b, 0x0a0a0a0a,
                       0x09090909, 0x08080808, 0x07070707, 0x06060606, 0x05050505, 0x04040404,
                       0x03030303, 0x02020202, 0x01010101, 0x00000000);
  const __m512i start =
      _mm512_broadcast_i32x4(_mm_loadu_si128(reinterpret_cast<const __m128i*>(starts)));
  const __m512i index =
      _mm512_add_epi8(_mm512_shuffle_epi8(start, spread), _mm512_set1_epi32(0x03020100));
  const __m512i bytes = _mm512_permutexvar_epi8(index, block);
  const __m512i stop = _mm512_andnot_si512(bytes, _mm512_set1_epi8(static_cast<char>(0x80)));
  __m512i value = PackGroups(KeepValue(bytes, stop, _mm512_add_epi32(stop, _mm512_set1_epi32(-1))));
  if (kZigzag) {
    const __m512i sign =
        _mm512_sub_epi32(_mm512_setzero_si512(), _mm512_and_si512(value, _mm512_set1_epi32(1)));
    value = _mm512_xor_si512(_mm512_srli_epi32(value, 1), sign);
  }
  _mm512_storeu_si512(out, _mm512_cvtepi32_epi64(_mm512_castsi512_si256(value)));
  _mm512_storeu_si512(out + 8, _mm512_cvtepi32_epi64(_mm512_extracti64x4_epi64(value, 1)));
}

// Bits 56 to 63 of the values in lanes `nine`, which have a ninth byte and perhaps a tenth.
HR_AVX512 inline __m512i LastBytes(__m512i block, __m512i index, __mmask8 nine) {
  const __m512i bytes = _mm512_permutexvar_epi8(_mm512_add_epi8(index, _mm512_set1_epi8(8)), block);
  const __mmask8 ten = _mm512_mask_test_epi64_mask(nine, bytes, _mm512_set1_epi64(0x80));
  return _mm512_or_si512(
      _mm512_maskz_slli_epi64(nine, _mm512_and_si512(bytes, _mm512_set1_epi64(0x7f)), 56),
      _mm512_maskz_slli_epi64(ten, _mm512_srli_epi64(bytes, 8), 63));
}

// Eight values at once of any length, as UnpackShort. `has_long`: some value has more than 8 bytes.
template <bool kZigzag>
HR_AVX512 inline void UnpackAny(__m512i block, const uint8_t* starts, bool has_long, int64_t* out) {
  const __m512i spread = _mm512_set_epi64(
      0x0707070707070707, 0x0606060606060606, 0x0505050505050505, 0x0404040404040404,
      0x0303030303030303, 0x0202020202020202, 0x0101010101010101, 0x0000000000000000);
  int64_t eight;
  std::memcpy(&eight, starts, 8);
  const __m512i index = _mm512_add_epi8(_mm512_shuffle_epi8(_mm512_set1_epi64(eight), spread),
                                        _mm512_set1_epi64(0x0706050403020100));
  const __m512i bytes = _mm512_permutexvar_epi8(index, block);
  const __m512i stop = _mm512_andnot_si512(bytes, _mm512_set1_epi8(static_cast<char>(0x80)));
  __m512i value = PackGroups(KeepValue(bytes, stop, _mm512_add_epi64(stop, _mm512_set1_epi64(-1))));
  value = _mm512_or_si512(_mm512_and_si512(value, _mm512_set1_epi64(0xffffffff)),
                          _mm512_slli_epi64(_mm512_srli_epi64(value, 32), 28));
  if (has_long) {
    const __mmask8 nine = _mm512_testn_epi64_mask(stop, stop);
    value = _mm512_or_si512(value, LastBytes(block, index, nine));
  }
  _mm512_storeu_si512(out, FinishAvx512<kZigzag>(value));
}

// Unpacks the `take` values that end in the first `used` bytes of `block`. False when one of them
// is too long.
template <bool kZigzag>
HR_AVX512 inline bool UnpackBlock(__m512i block, uint64_t terminators, unsigned take, unsigned used,
                                  int64_t* out) {
  const __m512i iota = _mm512_set_epi8(
      63, 62, 61, 60, 59, 58, 57, 56, 55, 54, 53, 52, 51, 50, 49, 48, 47, 46, 45, 44, 43, 42, 41,
      40, 39, 38, 37, 36, 35, 34, 33, 32, 31, 30, 29, 28, 27, 26, 25, 24, 23, 22, 21, 20, 19, 18,
      17, 16, 15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0);
  alignas(64) uint8_t starts[64];  // of the values that end in the block
  const uint64_t continuation = _bzhi_u64(~terminators, used);
  const uint64_t two = continuation & (continuation >> 1), four = two & (two >> 2);
  const uint64_t eight = four & (four >> 4);
  if (eight != 0 && HasTooLongValue(continuation, eight)) return false;
  _mm512_store_si512(starts, _mm512_maskz_compress_epi8((terminators << 1) | 1, iota));
  if (four == 0) {
    for (unsigned k = 0; k < take; k += 16) UnpackShort<kZigzag>(block, starts + k, out + k);
  } else {
    for (unsigned k = 0; k < take; k += 8)
      UnpackAny<kZigzag>(block, starts + k, eight != 0, out + k);
  }
  return true;
}

template <bool kZigzag>
HR_AVX512 const uint8_t* DecodeAvx512(const uint8_t* p, const uint8_t* end, size_t count,
                                      int64_t* out) {
  while (count > 0) {
    const __m512i block = _mm512_loadu_si512(p);
    uint64_t terminators = ~_cvtmask64_u64(_mm512_movepi8_mask(block));
    const size_t room = static_cast<size_t>(end - p);
    if (room < 64) terminators = _bzhi_u64(terminators, static_cast<unsigned>(room));
    auto take = static_cast<unsigned>(_mm_popcnt_u64(terminators));
    unsigned used;
    if (terminators == ~uint64_t{0} && count >= 64) {
      WidenBytes<kZigzag>(p, out);
      out += 64, p += 64, count -= 64;
      continue;
    }
    if (room >= 64 && take < count) {
      used = LastEnd<64>(p);
      if (used != 64 - static_cast<unsigned>(_lzcnt_u64(terminators))) return nullptr;
    } else {
      if (take == 0) return nullptr;
      if (take > count) {
        take = static_cast<unsigned>(count);
        terminators = _pdep_u64((uint64_t{1} << take) - 1, terminators);
      }
      used = 64 - static_cast<unsigned>(_lzcnt_u64(terminators));
    }
    if (!UnpackBlock<kZigzag>(block, terminators, take, used, out)) return nullptr;
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
