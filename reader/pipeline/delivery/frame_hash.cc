#include "reader/pipeline/delivery/frame_hash.h"

#include "reader/pipeline/delivery/frame_hash_inline.h"

namespace headrace::reader {

#if defined(__x86_64__)
uint64_t HashPiecesAvx2(std::span<const std::span<const uint8_t>> parts, uint64_t seed,
                        uint8_t* to);
#endif

namespace {

uint64_t HashBy(InstructionSet set, std::span<const std::span<const uint8_t>> parts, uint64_t seed,
                uint8_t* to) {
#if defined(__x86_64__)
  if (set != InstructionSet::kScalar) return HashPiecesAvx2(parts, seed, to);
#endif
  (void)set;
  return HashPieces(parts, seed, to);
}

}  // namespace

uint64_t HashParts(std::span<const std::span<const uint8_t>> parts, uint64_t seed,
                   InstructionSet set) {
  return HashBy(set, parts, seed, nullptr);
}

uint64_t HashAndCopyParts(std::span<const std::span<const uint8_t>> parts, uint64_t seed,
                          uint8_t* to, InstructionSet set) {
  return HashBy(set, parts, seed, to);
}

}  // namespace headrace::reader
