#include "reader/dwrf/decode/rle_simd.h"

#include <algorithm>
#include <cstring>

#include "reader/dwrf/decode/varint_simd.h"
#include "reader/dwrf/decode/varint_skip.h"

#if defined(__x86_64__)
#include <immintrin.h>
#define HR_AVX2 __attribute__((target("avx2,bmi,bmi2")))
#endif

namespace headrace::reader::dwrf {
namespace {

// One control byte: a run of `count` values, or `count` literals.
struct Group {
  bool is_run;
  size_t count;
};
Group ReadControl(uint8_t control) {
  return control < 128 ? Group{true, size_t{control} + 3} : Group{false, size_t{256} - control};
}

const uint8_t* ReadOne(const uint8_t* p, const uint8_t* end, IntegerFormat format,
                       uint64_t* value) {
  if (format.fixed_width == 0) {
    p = DecodeVarint(p, end, value);
    if (p != nullptr && format.is_signed) *value = static_cast<uint64_t>(UndoZigzag(*value));
    return p;
  }
  if (end - p < format.fixed_width) return nullptr;
  uint64_t raw = 0;
  std::memcpy(&raw, p, format.fixed_width);
  const int unused = 64 - 8 * format.fixed_width;
  *value =
      format.is_signed ? static_cast<uint64_t>(static_cast<int64_t>(raw << unused) >> unused) : raw;
  return p + format.fixed_width;
}

// Lengths of one literal group, byte by byte.
const uint8_t* LengthLiteralsScalar(const uint8_t* p, const uint8_t* end, size_t count,
                                    uint32_t* out) {
  for (size_t i = 0; i < count; ++i) {
    uint64_t value = 0;
    p = DecodeVarint(p, end, &value);
    if (p == nullptr || value > UINT32_MAX) return nullptr;
    out[i] = static_cast<uint32_t>(value);
  }
  return p;
}

void FillRunScalar(uint32_t base, int delta, size_t count, uint32_t* out) {
  for (size_t i = 0; i < count; ++i)
    out[i] = base + static_cast<uint32_t>(delta) * static_cast<uint32_t>(i);
}

#if defined(__x86_64__)
// Sixteen one-byte lengths at a time; where a longer one comes, the bytes before it, then it alone.
// Writes up to 16 past.
HR_AVX2 const uint8_t* LengthLiteralsAvx2(const uint8_t* p, const uint8_t* end, size_t count,
                                          uint32_t* out) {
  while (count > 0) {
    const __m128i bytes = _mm_loadu_si128(reinterpret_cast<const __m128i*>(p));
    const unsigned continued = static_cast<unsigned>(_mm_movemask_epi8(bytes)) | 0x10000u;
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(out), _mm256_cvtepu8_epi32(bytes));
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(out + 8),
                        _mm256_cvtepu8_epi32(_mm_srli_si128(bytes, 8)));
    const size_t short_ones = std::min<size_t>(_tzcnt_u32(continued), count);
    p += short_ones, out += short_ones, count -= short_ones;
    if (p > end) return nullptr;
    if (count == 0 || short_ones == 16) continue;
    uint64_t value = 0;
    p = DecodeVarint(p, end, &value);
    if (p == nullptr || value > UINT32_MAX) return nullptr;
    *out++ = static_cast<uint32_t>(value), --count;
  }
  return p;
}

HR_AVX2 void FillRunAvx2(uint32_t base, int delta, size_t count, uint32_t* out) {
  const __m256i step = _mm256_set1_epi32(8 * delta);
  __m256i value = _mm256_add_epi32(
      _mm256_set1_epi32(static_cast<int>(base)),
      _mm256_mullo_epi32(_mm256_set1_epi32(delta), _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7)));
  for (size_t i = 0; i < count; i += 8) {
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(out + i), value);
    value = _mm256_add_epi32(value, step);
  }
}
#endif

uint64_t Sum(const uint32_t* values, size_t count) {
  uint64_t lanes[4] = {};
  size_t i = 0;
  for (; i + 4 <= count; i += 4) {
    for (int k = 0; k < 4; ++k) lanes[k] += values[i + k];
  }
  for (; i < count; ++i) lanes[0] += values[i];
  return lanes[0] + lanes[1] + lanes[2] + lanes[3];
}

}  // namespace

const uint8_t* DecodePlain(const uint8_t* p, const uint8_t* end, size_t count, IntegerFormat format,
                           int64_t* out, InstructionSet set) {
  if (format.fixed_width == 0) return DecodeVarints(p, end, count, format.is_signed, out, set);
  if (static_cast<size_t>(end - p) / format.fixed_width < count) return nullptr;
  if (format.fixed_width == sizeof(int64_t)) {  // as they lie in memory
    std::memcpy(out, p, count * sizeof(int64_t));
    return p + count * sizeof(int64_t);
  }
  for (size_t i = 0; i < count; ++i) {
    uint64_t value = 0;
    p = ReadOne(p, end, format, &value);
    out[i] = static_cast<int64_t>(value);
  }
  return p;
}

bool DecodeRle(RleCursor* cursor, const uint8_t* end, size_t count, IntegerFormat format,
               int64_t* out, InstructionSet set) {
  const uint8_t* p = cursor->at;
  while (count > 0) {
    if (cursor->left == 0) {
      if (p >= end) return false;
      const Group group = ReadControl(*p++);
      cursor->left = group.count;
      cursor->is_run = group.is_run;
      if (group.is_run) {
        if (p >= end) return false;
        cursor->delta = static_cast<uint64_t>(static_cast<int64_t>(static_cast<int8_t>(*p++)));
        p = ReadOne(p, end, format, &cursor->next);
      }
    }
    const size_t take = std::min(cursor->left, count);
    if (cursor->is_run) {
      for (size_t i = 0; i < take && out != nullptr; ++i)
        out[i] = static_cast<int64_t>(cursor->next + cursor->delta * i);
      cursor->next += cursor->delta * take;
    } else if (out != nullptr) {
      p = DecodePlain(p, end, take, format, out, set);
    } else if (format.fixed_width == 0) {
      p = SkipVarints(p, end, take, set);
    } else {
      p = static_cast<size_t>(end - p) / format.fixed_width < take ? nullptr
                                                                   : p + take * format.fixed_width;
    }
    if (p == nullptr) return false;
    if (out != nullptr) out += take;
    cursor->left -= take, count -= take;
  }
  cursor->at = p;
  return true;
}

const uint8_t* DecodeRle(const uint8_t* p, const uint8_t* end, size_t count, IntegerFormat format,
                         int64_t* out, InstructionSet set) {
  RleCursor cursor{p, 0, false, 0, 0};
  return DecodeRle(&cursor, end, count, format, out, set) ? cursor.at : nullptr;
}

const uint8_t* DecodeLengths(const uint8_t* p, const uint8_t* end, size_t count,
                             IntegerFormat format, uint32_t* out, uint64_t* total,
                             InstructionSet set) {
  uint32_t* const first = out;
  const size_t all = count;
  auto literals = &LengthLiteralsScalar;
  auto fill_run = &FillRunScalar;
#if defined(__x86_64__)
  if (set >= InstructionSet::kAvx2) {
    literals = &LengthLiteralsAvx2;
    fill_run = &FillRunAvx2;
  }
#else
  (void)set;
#endif
  while (count > 0) {
    if (p >= end) return nullptr;
    const Group group = ReadControl(*p++);
    const size_t take = std::min(group.count, count);
    if (group.is_run) {
      if (p >= end) return nullptr;
      const int delta = static_cast<int8_t>(*p++);
      uint64_t base = 0;
      p = ReadOne(p, end, format, &base);
      if (p == nullptr || base > UINT32_MAX) return nullptr;
      const int64_t last =
          static_cast<int64_t>(base) + int64_t{delta} * static_cast<int64_t>(take - 1);
      if (last < 0 || last > int64_t{UINT32_MAX}) return nullptr;
      fill_run(static_cast<uint32_t>(base), delta, take, out);
    } else if (format.fixed_width == 0) {
      p = literals(p, end, take, out);
      if (p == nullptr) return nullptr;
    } else {
      for (size_t i = 0; i < take; ++i) {
        uint64_t value = 0;
        p = ReadOne(p, end, format, &value);
        if (p == nullptr || value > UINT32_MAX) return nullptr;
        out[i] = static_cast<uint32_t>(value);
      }
    }
    out += take, count -= take;
  }
  *total = Sum(first, all);
  return p;
}

}  // namespace headrace::reader::dwrf
