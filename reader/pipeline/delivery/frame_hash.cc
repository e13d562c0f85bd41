#include "reader/pipeline/delivery/frame_hash.h"

#include <new>

#include "reader/pipeline/delivery/frame_hash_inline.h"

namespace headrace::reader {

#if defined(__x86_64__)
uint64_t HashPiecesAvx2(std::span<const std::span<const uint8_t>> parts, uint64_t seed,
                        uint8_t* to);
void HashPieceAvx2(void* state, std::span<const uint8_t> piece);
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

FrameHasher::FrameHasher(uint64_t seed, InstructionSet set) : set_(set) {
  static_assert(sizeof(XXH3_state_t) == sizeof state_ && alignof(XXH3_state_t) == 64);
  auto* const state = new (state_.data()) XXH3_state_t{};
  XXH3_64bits_reset_withSeed(state, seed);
}

// The state is laid out alike for every instruction set.
void FrameHasher::Add(std::span<const uint8_t> piece) {
#if defined(__x86_64__)
  if (set_ != InstructionSet::kScalar) return HashPieceAvx2(state_.data(), piece);
#endif
  HashPiece(reinterpret_cast<XXH3_state_t*>(state_.data()), piece);
}

uint64_t FrameHasher::Hash() const {
  return XXH3_64bits_digest(reinterpret_cast<const XXH3_state_t*>(state_.data()));
}

}  // namespace headrace::reader
