// From values of present rows to one slot per row.
//
//   present 1 0 1 1 (row 0 first)
//   packed floats  0.5 2 3   ->  0.5 0 2 3
//   packed lengths 2 0 1     ->  offsets 0 2 2 2 3
//
// Kernels as in varint_simd.h: `packed` has as many entries as set bits and is readable for 64
// bytes beyond; results have exactly the stated size.
#pragma once
#include <cstddef>
#include <cstdint>

#include "base/cpu.h"

namespace headrace::reader::dwrf {

// `packed`: little-endian floats at any alignment. Writes out[0, rows), 0 where the bit is clear.
void ExpandFloats(const uint8_t* packed, const uint64_t* present, uint64_t rows, float* out,
                  InstructionSet set = BestInstructionSet());

// Writes offsets[0, rows]; offsets[0] = 0. The total of the lengths is below 2^32.
void ExpandLengths(const uint32_t* packed, const uint64_t* present, uint64_t rows,
                   uint32_t* offsets, InstructionSet set = BestInstructionSet());

}  // namespace headrace::reader::dwrf
