// Copies bytes past the caches: for more than fits there, that are not read again soon, or by
// another core. An ordinary copy first fetches what it is about to write over, which takes half of
// the memory's rate.
#pragma once
#include <cstdint>
#include <span>

#include "base/cpu.h"

namespace headrace::reader {

// `to` has room for them and overlaps none. Once it returns, other threads see them as they see
// what a memcpy wrote.
void StreamCopy(uint8_t* to, std::span<const uint8_t> from,
                InstructionSet set = BestInstructionSet());

}  // namespace headrace::reader
