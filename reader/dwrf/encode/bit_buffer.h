// BitBuffer: a growing row of bits, bit i at i % 64 of word i / 64, as in PresenceBits. PRESENT,
// IN_MAP, IN_DICTIONARY and boolean values wait in it until their stripe is encoded (EncodeBits
// turns the bits of a byte around).
#pragma once
#include <bit>
#include <cstdint>
#include <span>
#include <vector>

namespace headrace::reader::dwrf {

// Bits [begin, begin + count) of `words`, count <= 64, the first one least significant.
inline uint64_t LoadBits(std::span<const uint64_t> words, uint64_t begin, uint64_t count) {
  if (count == 0) return 0;
  const uint64_t word = begin >> 6, shift = begin & 63;
  uint64_t bits = words[word] >> shift;
  if (shift + count > 64) bits |= words[word + 1] << (64 - shift);
  return count == 64 ? bits : bits & ((uint64_t{1} << count) - 1);
}

inline uint64_t CountBits(std::span<const uint64_t> words, uint64_t begin, uint64_t count) {
  uint64_t ones = 0;
  for (uint64_t i = 0; i < count; i += 64)
    ones += static_cast<uint64_t>(
        std::popcount(LoadBits(words, begin + i, count - i < 64 ? count - i : 64)));
  return ones;
}

class BitBuffer {
 public:
  // `bits` has no ones past `count` <= 64.
  void AppendWord(uint64_t bits, uint64_t count) {
    const uint64_t shift = size_ & 63;
    if (shift == 0) {
      if (count > 0) words_.push_back(bits);
    } else {
      words_.back() |= bits << shift;
      if (shift + count > 64) words_.push_back(bits >> (64 - shift));
    }
    size_ += count;
  }
  void Append(bool bit) { AppendWord(bit, 1); }
  void AppendRun(bool bit, uint64_t count) {
    for (; count >= 64; count -= 64) AppendWord(bit ? ~uint64_t{0} : 0, 64);
    if (count > 0) AppendWord(bit ? (uint64_t{1} << count) - 1 : 0, count);
  }
  void AppendBits(std::span<const uint64_t> words, uint64_t begin, uint64_t count) {
    for (uint64_t i = 0; i < count; i += 64) {
      const uint64_t take = count - i < 64 ? count - i : 64;
      AppendWord(LoadBits(words, begin + i, take), take);
    }
  }
  void Clear() {
    words_.clear();
    size_ = 0;
  }
  bool Get(uint64_t i) const { return words_[i >> 6] >> (i & 63) & 1; }
  uint64_t size() const { return size_; }
  std::span<const uint64_t> words() const { return words_; }

 private:
  std::vector<uint64_t> words_;
  uint64_t size_ = 0;
};

}  // namespace headrace::reader::dwrf
