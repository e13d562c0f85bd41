// Base-128 varints (FORMAT 1 and 7.4) in bulk: the encoding of direct integers and of RLE literals.
//
//   d8 04  09        two values: 600, 9; with zigzag 300, -5
//
// Three kernels with the same results, chosen by instruction set: a byte loop, BMI2 (one 8-byte
// load per value, pext), and AVX-512 VBMI2 (64 bytes at a time: terminator mask, byte gather,
// three-step 7-bit packing). The kernels do not throw: a null result says that the bytes are
// damaged.
#pragma once
#include <cstddef>
#include <cstdint>

#include "base/cpu.h"

namespace headrace::reader::dwrf {

// Kernels write up to this many values past the last one asked for.
constexpr size_t kDecodeSlack = 16;

// Decodes `count` varints from [begin, end) into out[0, count), zigzag undone when `zigzag`. Bytes
// past `end` are read (up to Buffer::kPadding) but never used; `out` has room for count +
// kDecodeSlack. Returns one past the last byte used, or null when the bytes end too early or a
// value has more than 10 bytes. Bits past the 64th are dropped.
const uint8_t* DecodeVarints(const uint8_t* begin, const uint8_t* end, size_t count, bool zigzag,
                             int64_t* out, InstructionSet set = BestInstructionSet());

// One value, plain; null as above. Reads no byte past `end`.
const uint8_t* DecodeVarint(const uint8_t* begin, const uint8_t* end, uint64_t* value);

inline int64_t UndoZigzag(uint64_t value) {
  return static_cast<int64_t>(value >> 1) ^ -static_cast<int64_t>(value & 1);
}

}  // namespace headrace::reader::dwrf
