#include "reader/dwrf/decode/bool_expand.h"

#include <algorithm>
#include <bit>
#include <cstring>

#if defined(__x86_64__)
#include <immintrin.h>
#define HR_AVX2 __attribute__((target("avx2,bmi,bmi2,popcnt,lzcnt")))
#endif

namespace headrace::reader::dwrf {
namespace {

static_assert(std::endian::native == std::endian::little, "bitmaps are built byte by byte");

// Reverses the bits of each byte.
uint64_t ReverseBitsOfBytes(uint64_t word) {
  word = (word >> 1 & 0x5555555555555555u) | (word & 0x5555555555555555u) << 1;
  word = (word >> 2 & 0x3333333333333333u) | (word & 0x3333333333333333u) << 2;
  return (word >> 4 & 0x0f0f0f0f0f0f0f0fu) | (word & 0x0f0f0f0f0f0f0f0fu) << 4;
}

void ReverseScalar(uint64_t* words, size_t num_words) {
  for (size_t i = 0; i < num_words; ++i) words[i] = ReverseBitsOfBytes(words[i]);
}

uint64_t CountScalar(const uint64_t* words, size_t num_words) {
  uint64_t count = 0;
  for (size_t i = 0; i < num_words; ++i) count += static_cast<uint64_t>(std::popcount(words[i]));
  return count;
}

// A reader of `bits` at a time from packed words; bits past the last word read as zero.
class BitCursor {
 public:
  BitCursor(const uint64_t* words, size_t num_words) : words_(words), num_words_(num_words) {}
  // The next 64 bits, then moves on by `used`.
  uint64_t Take(unsigned used) {
    const size_t index = position_ >> 6;
    const unsigned shift = position_ & 63;
    uint64_t bits = index < num_words_ ? words_[index] >> shift : 0;
    if (shift != 0 && index + 1 < num_words_) bits |= words_[index + 1] << (64 - shift);
    position_ += used;
    return bits;
  }

 private:
  const uint64_t* words_;
  size_t num_words_;
  uint64_t position_ = 0;
};

void DepositScalar(const uint64_t* packed, size_t num_packed_words, const uint64_t* mask,
                   size_t num_words, uint64_t* out) {
  BitCursor cursor(packed, num_packed_words);
  for (size_t i = 0; i < num_words; ++i) {
    uint64_t left = mask[i], result = 0;
    for (uint64_t bits = cursor.Take(static_cast<unsigned>(std::popcount(left))); left != 0;
         left &= left - 1, bits >>= 1) {
      if (bits & 1) result |= left & -left;
    }
    out[i] = result;
  }
}

#if defined(__x86_64__)
HR_AVX2 void ReverseAvx2(uint64_t* words, size_t num_words) {
  const __m256i nibble = _mm256_set1_epi8(0x0f);
  const __m256i low = _mm256_broadcastsi128_si256(_mm_setr_epi8(
      0x00, static_cast<char>(0x80), 0x40, static_cast<char>(0xc0), 0x20, static_cast<char>(0xa0),
      0x60, static_cast<char>(0xe0), 0x10, static_cast<char>(0x90), 0x50, static_cast<char>(0xd0),
      0x30, static_cast<char>(0xb0), 0x70, static_cast<char>(0xf0)));
  const __m256i high = _mm256_and_si256(_mm256_srli_epi16(low, 4), nibble);
  size_t i = 0;
  for (; i + 4 <= num_words; i += 4) {
    __m256i* place = reinterpret_cast<__m256i*>(words + i);
    const __m256i bytes = _mm256_loadu_si256(place);
    const __m256i from_low = _mm256_shuffle_epi8(low, _mm256_and_si256(bytes, nibble));
    const __m256i from_high =
        _mm256_shuffle_epi8(high, _mm256_and_si256(_mm256_srli_epi16(bytes, 4), nibble));
    _mm256_storeu_si256(place, _mm256_or_si256(from_low, from_high));
  }
  ReverseScalar(words + i, num_words - i);
}

HR_AVX2 uint64_t CountPopcnt(const uint64_t* words, size_t num_words) {
  uint64_t count = 0;
  for (size_t i = 0; i < num_words; ++i) count += static_cast<uint64_t>(_mm_popcnt_u64(words[i]));
  return count;
}

HR_AVX2 void DepositBmi2(const uint64_t* packed, size_t num_packed_words, const uint64_t* mask,
                         size_t num_words, uint64_t* out) {
  BitCursor cursor(packed, num_packed_words);
  for (size_t i = 0; i < num_words; ++i) {
    const uint64_t word = mask[i];
    out[i] = _pdep_u64(cursor.Take(static_cast<unsigned>(_mm_popcnt_u64(word))), word);
  }
}

bool Vectorised(InstructionSet set) { return set >= InstructionSet::kAvx2; }
#endif

}  // namespace

bool DecodeByteRle(std::span<const uint8_t> bytes, uint64_t count, uint8_t* out) {
  const uint8_t *p = bytes.data(), *end = p + bytes.size();
  while (count > 0) {
    if (end - p < 2) return false;
    const uint8_t control = *p++;
    if (control < 128) {
      const uint64_t take = std::min<uint64_t>(control + 3u, count);
      std::memset(out, *p++, take);
      out += take, count -= take;
    } else {
      const uint64_t take = std::min<uint64_t>(256u - control, count);
      if (static_cast<uint64_t>(end - p) < take) return false;
      std::memcpy(out, p, take);
      out += take, count -= take, p += take;
    }
  }
  return true;
}

bool DecodeBits(std::span<const uint8_t> bytes, uint64_t count, uint64_t* words,
                InstructionSet set) {
  if (count == 0) return true;
  const size_t num_words = NumWords(count);
  words[num_words - 1] = 0;
  if (!DecodeByteRle(bytes, (count + 7) / 8, reinterpret_cast<uint8_t*>(words))) return false;
#if defined(__x86_64__)
  if (Vectorised(set)) {
    ReverseAvx2(words, num_words);
  } else {
    ReverseScalar(words, num_words);
  }
#else
  (void)set;
  ReverseScalar(words, num_words);
#endif
  if (count % 64 != 0) words[num_words - 1] &= (uint64_t{1} << (count % 64)) - 1;
  return true;
}

uint64_t CountBits(const uint64_t* words, size_t num_words, InstructionSet set) {
#if defined(__x86_64__)
  if (Vectorised(set)) return CountPopcnt(words, num_words);
#endif
  (void)set;
  return CountScalar(words, num_words);
}

void DepositBits(const uint64_t* packed, size_t num_packed_words, const uint64_t* mask,
                 size_t num_words, uint64_t* out, InstructionSet set) {
#if defined(__x86_64__)
  if (Vectorised(set)) return DepositBmi2(packed, num_packed_words, mask, num_words, out);
#endif
  (void)set;
  DepositScalar(packed, num_packed_words, mask, num_words, out);
}

}  // namespace headrace::reader::dwrf
