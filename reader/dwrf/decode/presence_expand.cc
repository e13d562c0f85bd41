#include "reader/dwrf/decode/presence_expand.h"

#include <array>
#include <cstring>

#if defined(__x86_64__)
#if defined(__GNUC__) && !defined(__clang__)
// g++ 12 takes _mm512_undefined_epi32 in its own header for a use of an uninitialised value.
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#endif
#include <immintrin.h>
#define HR_AVX2 __attribute__((target("avx2,bmi,bmi2,popcnt,lzcnt")))
#define HR_AVX512        \
  __attribute__((target( \
      "bmi,bmi2,lzcnt,popcnt,avx2,avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi,avx512vbmi2")))
#endif

namespace headrace::reader::dwrf {
namespace {

bool Bit(const uint64_t* present, uint64_t row) { return present[row >> 6] >> (row & 63) & 1; }

// Rows [first, rows), with the cursors where the vector loop left them.
void ExpandFloatsFrom(uint64_t first, const uint8_t* packed, const uint64_t* present, uint64_t rows,
                      float* out) {
  for (uint64_t row = first; row < rows; ++row) {
    out[row] = 0;
    if (Bit(present, row)) {
      std::memcpy(out + row, packed, sizeof(float));
      packed += sizeof(float);
    }
  }
}

void ExpandLengthsFrom(uint64_t first, const uint32_t* packed, const uint64_t* present,
                       uint64_t rows, uint32_t offset, uint32_t* offsets) {
  for (uint64_t row = first; row < rows; ++row) {
    if (Bit(present, row)) offset += *packed++;
    offsets[row + 1] = offset;
  }
}

#if defined(__x86_64__)

// For each 8-bit mask, which packed lane goes to lane i: the number of set bits below i.
constexpr std::array<std::array<uint8_t, 8>, 256> kExpandLanes = [] {
  std::array<std::array<uint8_t, 8>, 256> table{};
  for (int mask = 0; mask < 256; ++mask) {
    uint8_t used = 0;
    for (int lane = 0; lane < 8; ++lane) {
      table[mask][lane] = used;
      used += mask >> lane & 1;
    }
  }
  return table;
}();

unsigned MaskByte(const uint64_t* present, uint64_t row) {
  return present[row >> 6] >> (row & 63) & 0xff;
}

HR_AVX2 inline __m256i ExpandAvx2(__m256i packed, unsigned mask) {
  const __m256i lanes = _mm256_cvtepu8_epi32(
      _mm_loadl_epi64(reinterpret_cast<const __m128i*>(kExpandLanes[mask].data())));
  const __m256i bits = _mm256_setr_epi32(1, 2, 4, 8, 16, 32, 64, 128);
  const __m256i keep =
      _mm256_cmpeq_epi32(_mm256_and_si256(_mm256_set1_epi32(static_cast<int>(mask)), bits), bits);
  return _mm256_and_si256(_mm256_permutevar8x32_epi32(packed, lanes), keep);
}

HR_AVX2 void ExpandFloatsAvx2(const uint8_t* packed, const uint64_t* present, uint64_t rows,
                              float* out) {
  uint64_t row = 0;
  for (; row + 8 <= rows; row += 8) {
    const unsigned mask = MaskByte(present, row);
    const __m256i values = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(packed));
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(out + row), ExpandAvx2(values, mask));
    packed += sizeof(float) * static_cast<unsigned>(_mm_popcnt_u32(mask));
  }
  ExpandFloatsFrom(row, packed, present, rows, out);
}

HR_AVX2 void ExpandLengthsAvx2(const uint32_t* packed, const uint64_t* present, uint64_t rows,
                               uint32_t* offsets) {
  uint32_t offset = 0;
  uint64_t row = 0;
  for (; row + 8 <= rows; row += 8) {
    const unsigned mask = MaskByte(present, row);
    __m256i sums = ExpandAvx2(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(packed)), mask);
    sums = _mm256_add_epi32(sums, _mm256_slli_si256(sums, 4));
    sums = _mm256_add_epi32(sums, _mm256_slli_si256(sums, 8));
    const __m256i low_total = _mm256_permutevar8x32_epi32(sums, _mm256_set1_epi32(3));
    sums = _mm256_add_epi32(sums, _mm256_blend_epi32(_mm256_setzero_si256(), low_total, 0xf0));
    sums = _mm256_add_epi32(sums, _mm256_set1_epi32(static_cast<int>(offset)));
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(offsets + row + 1), sums);
    offset = static_cast<uint32_t>(_mm256_extract_epi32(sums, 7));
    packed += static_cast<unsigned>(_mm_popcnt_u32(mask));
  }
  ExpandLengthsFrom(row, packed, present, rows, offset, offsets);
}

unsigned MaskWord(const uint64_t* present, uint64_t row) {
  return present[row >> 6] >> (row & 63) & 0xffff;
}

HR_AVX512 void ExpandFloatsAvx512(const uint8_t* packed, const uint64_t* present, uint64_t rows,
                                  float* out) {
  uint64_t row = 0;
  for (; row + 16 <= rows; row += 16) {
    const unsigned mask = MaskWord(present, row);
    _mm512_storeu_ps(out + row,
                     _mm512_maskz_expand_ps(static_cast<__mmask16>(mask), _mm512_loadu_ps(packed)));
    packed += sizeof(float) * static_cast<unsigned>(_mm_popcnt_u32(mask));
  }
  ExpandFloatsFrom(row, packed, present, rows, out);
}

HR_AVX512 void ExpandLengthsAvx512(const uint32_t* packed, const uint64_t* present, uint64_t rows,
                                   uint32_t* offsets) {
  const __m512i zero = _mm512_setzero_si512(), last_lane = _mm512_set1_epi32(15);
  __m512i carry = zero;
  uint64_t row = 0;
  for (; row + 16 <= rows; row += 16) {
    const unsigned mask = MaskWord(present, row);
    __m512i sums =
        _mm512_maskz_expand_epi32(static_cast<__mmask16>(mask), _mm512_loadu_si512(packed));
    sums = _mm512_add_epi32(sums, _mm512_alignr_epi32(sums, zero, 15));
    sums = _mm512_add_epi32(sums, _mm512_alignr_epi32(sums, zero, 14));
    sums = _mm512_add_epi32(sums, _mm512_alignr_epi32(sums, zero, 12));
    sums = _mm512_add_epi32(sums, _mm512_alignr_epi32(sums, zero, 8));
    sums = _mm512_add_epi32(sums, carry);
    _mm512_storeu_si512(offsets + row + 1, sums);
    carry = _mm512_permutexvar_epi32(last_lane, sums);
    packed += static_cast<unsigned>(_mm_popcnt_u32(mask));
  }
  ExpandLengthsFrom(row, packed, present, rows, static_cast<uint32_t>(_mm512_cvtsi512_si32(carry)),
                    offsets);
}

#endif

}  // namespace

void ExpandFloats(const uint8_t* packed, const uint64_t* present, uint64_t rows, float* out,
                  InstructionSet set) {
#if defined(__x86_64__)
  if (set == InstructionSet::kAvx512) return ExpandFloatsAvx512(packed, present, rows, out);
  if (set == InstructionSet::kAvx2) return ExpandFloatsAvx2(packed, present, rows, out);
#endif
  (void)set;
  ExpandFloatsFrom(0, packed, present, rows, out);
}

void ExpandLengths(const uint32_t* packed, const uint64_t* present, uint64_t rows,
                   uint32_t* offsets, InstructionSet set) {
  offsets[0] = 0;
#if defined(__x86_64__)
  if (set == InstructionSet::kAvx512) return ExpandLengthsAvx512(packed, present, rows, offsets);
  if (set == InstructionSet::kAvx2) return ExpandLengthsAvx2(packed, present, rows, offsets);
#endif
  (void)set;
  ExpandLengthsFrom(0, packed, present, rows, 0, offsets);
}

}  // namespace headrace::reader::dwrf
