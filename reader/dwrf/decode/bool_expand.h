// Boolean streams (FORMAT 7.1, 7.2: byte RLE of bits, most significant first) into bitmaps of
// 64-bit words, least significant bit first, and the one operation on them that flattened maps
// need.
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>

#include "base/cpu.h"

namespace headrace::reader::dwrf {

constexpr size_t NumWords(uint64_t bits) { return (bits + 63) / 64; }

// Decodes `count` bits into words[0, NumWords(count)); bits past `count` are zero. False when the
// bytes end too early. Reads no byte past the span's end.
bool DecodeBits(std::span<const uint8_t> bytes, uint64_t count, uint64_t* words,
                InstructionSet set = BestInstructionSet());

// The bytes themselves, byte RLE undone: `count` bytes into out. False when they end too early.
bool DecodeByteRle(std::span<const uint8_t> bytes, uint64_t count, uint8_t* out);

uint64_t CountBits(const uint64_t* words, size_t num_words,
                   InstructionSet set = BestInstructionSet());

// Puts the bits of `packed` in turn at the set bits of `mask`, zero elsewhere: from bits per
// present row to bits per row.
//
//   mask 1 0 1 1 (row 0 first), packed 1 0 1  ->  1 0 0 1
//
// `out` may be `mask`. `packed` has NumWords(set bits of mask) words.
void DepositBits(const uint64_t* packed, size_t num_packed_words, const uint64_t* mask,
                 size_t num_words, uint64_t* out, InstructionSet set = BestInstructionSet());

}  // namespace headrace::reader::dwrf
