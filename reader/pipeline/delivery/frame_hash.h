// XXH3-64 over the parts of a frame as if they were contiguous. The system's library is built for
// any x86-64 and hashes half as fast as this with AVX2 (docs/measurements.md).
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "base/cpu.h"

namespace headrace::reader {

uint64_t HashParts(std::span<const std::span<const uint8_t>> parts, uint64_t seed,
                   InstructionSet set = BestInstructionSet());
// The same, and copies the parts end to end to `to`, which has room for them and overlaps none. A
// piece is copied while it is in the nearest cache.
uint64_t HashAndCopyParts(std::span<const std::span<const uint8_t>> parts, uint64_t seed,
                          uint8_t* to, InstructionSet set = BestInstructionSet());

// The same of bytes that come piece by piece.
class FrameHasher {
 public:
  explicit FrameHasher(uint64_t seed, InstructionSet set = BestInstructionSet());
  void Add(std::span<const uint8_t> piece);
  uint64_t Hash() const;

 private:
  InstructionSet set_;
  alignas(64) std::array<std::byte, 576> state_;  // XXH3_state_t
};

}  // namespace headrace::reader
