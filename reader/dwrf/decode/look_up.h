// Indices of an integer dictionary to its values (FORMAT 8.1), in bulk and in place.
//
//   indices  2 0 77 0   entries 10 11 12   inside 1101 ->   12 10 77 10
//
// Two kernels with the same results, chosen by instruction set: a loop without branches on the
// values, and AVX-512 (eight at a time, gathered). They do not throw: damage is told by the result.
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>

#include "base/cpu.h"

namespace headrace::reader::dwrf {

// Replaces each of values[0, count) by entries[value]. `inside` null: all are indices; else bit i
// of it is 0 where value i is no index but the value itself, of which the lowest 64 - unused_bits
// bits count (sign extended). Returns false where an index is not below entries.size(); what is in
// `values` is then unspecified.
bool LookUpIndices(std::span<const int64_t> entries, const uint64_t* inside, int unused_bits,
                   int64_t* values, size_t count, InstructionSet set = BestInstructionSet());

}  // namespace headrace::reader::dwrf
