// Finds by their encoded bytes which lists differ from the list before them, because the ids of a
// repeated list need not be decoded again.
//
//   lengths 2 2 1      bytes  05 98 01 | 05 98 01 | 07      changed 1 0 1      starts 0 3 6 7
//
// Writers encode each integer in only one way, so equal lists have equal bytes; and equal bytes
// always mean equal lists. If a writer did encode a list in two ways, it counts as changed: a
// duplicate may be missed, never made up. No hash is involved.
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>

#include "base/cpu.h"
#include "reader/dwrf/decode/rle_simd.h"

namespace headrace::reader::dwrf {

// `width`: bytes of each integer, 0 for base-128 varints. Writes starts[0, lists], where each
// list's bytes begin from `begin`, and changed[(lists + 63) / 64], bit i of list i (the first is
// always changed; bits past the last list are 0). False when the bytes end before the last list
// does; then both are unspecified. Reads no byte outside [begin, end). That a varint has at most 10
// bytes is not checked.
bool FindChangedLists(const uint8_t* begin, const uint8_t* end, uint8_t width,
                      std::span<const uint32_t> lengths, uint64_t* starts, uint64_t* changed,
                      InstructionSet set = BestInstructionSet());

// Decodes the ids of lists `lists` (ascending) to `out`, one list after the other; up to
// kDecodeSlack ids after them are overwritten. Lists that are adjacent in memory are decoded
// together. Bytes are prefetched some lists ahead, because the processor cannot predict where the
// next chosen list lies. `lengths` and `starts` are those of all lists, as above. False when the
// bytes of a list do not hold its ids.
bool DecodeLists(const uint8_t* begin, std::span<const uint32_t> lists, const uint32_t* lengths,
                 const uint64_t* starts, IntegerFormat format, int64_t* out,
                 InstructionSet set = BestInstructionSet());

}  // namespace headrace::reader::dwrf
