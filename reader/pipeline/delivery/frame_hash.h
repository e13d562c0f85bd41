// XXH3-64 over the parts of a frame as if they were contiguous. The system's library is built for
// any x86-64 and hashes half as fast as this with AVX2 (docs/measurements.md).
#pragma once
#include <cstdint>
#include <span>

#include "base/cpu.h"

namespace headrace::reader {

uint64_t HashParts(std::span<const std::span<const uint8_t>> parts, uint64_t seed,
                   InstructionSet set = BestInstructionSet());

}  // namespace headrace::reader
