// Skips base-128 varints without decoding them; this is all that rows cost which a filter drops.
// Only the bytes that end a value (high bit clear) are counted, 64 at a time, so that a skipped
// value costs a small part of a decoded one (docs/measurements.md).
//
//   d8 04  09  81 02 | ...      skipping 2 values of these: 3 bytes
#pragma once
#include <cstddef>
#include <cstdint>

#include "base/cpu.h"

namespace headrace::reader::dwrf {

// One past the last byte of the first `count` varints of [begin, end); null when the bytes end
// before. Reads as DecodeVarints does; that a value has at most 10 bytes is not checked.
const uint8_t* SkipVarints(const uint8_t* begin, const uint8_t* end, size_t count,
                           InstructionSet set = BestInstructionSet());

}  // namespace headrace::reader::dwrf
