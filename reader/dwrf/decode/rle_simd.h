// Integer RLE version 1 (FORMAT 7.3) in bulk: lengths, dictionary indices.
//
//   02 02 28       run of 5 = 2 + 3 values from 40, step 2: 40 42 44 46 48
//   fd 01 d8 04 00 literals, 3 = 256 - 0xfd: 1 600 0 (signed: -1 300 0)
//
// Kernels as in varint_simd.h: no throw, null for damaged bytes, padding and slack as there. A last
// run or literal group that extends past `count` values is cut.
#pragma once
#include <cstddef>
#include <cstdint>

#include "base/cpu.h"

namespace headrace::reader::dwrf {

// How a stream stores integers. `fixed_width` 0 is varint (zigzag when signed), else bytes per
// little-endian value.
struct IntegerFormat {
  bool is_signed = false;
  uint8_t fixed_width = 0;
};

// `count` integers into out[0, count + kDecodeSlack); runs wrap at 64 bits.
const uint8_t* DecodeRle(const uint8_t* begin, const uint8_t* end, size_t count,
                         IntegerFormat format, int64_t* out,
                         InstructionSet set = BestInstructionSet());

// A place in a stream of runs, perhaps within a run or a group of literals.
struct RleCursor {
  const uint8_t* at = nullptr;  // the next byte
  size_t left = 0;              // values of the group at hand
  bool is_run = false;
  uint64_t next = 0, delta = 0;  // of that run
};
// As above, from the cursor on, which moves. `out` null: the values are passed over. False for
// damaged bytes.
bool DecodeRle(RleCursor* cursor, const uint8_t* end, size_t count, IntegerFormat format,
               int64_t* out, InstructionSet set = BestInstructionSet());

// `count` integers without runs (direct integers).
const uint8_t* DecodePlain(const uint8_t* begin, const uint8_t* end, size_t count,
                           IntegerFormat format, int64_t* out,
                           InstructionSet set = BestInstructionSet());

// `count` unsigned lengths into out[0, count + kDecodeSlack) and their total. A length of 2^32 or
// more is damage.
const uint8_t* DecodeLengths(const uint8_t* begin, const uint8_t* end, size_t count,
                             IntegerFormat format, uint32_t* out, uint64_t* total,
                             InstructionSet set = BestInstructionSet());

}  // namespace headrace::reader::dwrf
