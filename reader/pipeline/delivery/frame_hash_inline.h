// What is compiled once for each instruction set: the library's own source, which is a header as
// well. Who includes this has said XXH_VECTOR before, if not the compiler's own, and is compiled
// apart from others. (With AVX-512 the hash takes as long as with AVX2.)
#pragma once
#define XXH_INLINE_ALL
#include <xxhash.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <span>

namespace headrace::reader {
namespace {

// The hash; where `to` is not null also copies.
inline uint64_t HashPieces(std::span<const std::span<const uint8_t>> parts, uint64_t seed,
                           uint8_t* to) {
  constexpr size_t kPiece = 8192;  // of a nearest cache of 32 KiB
  if (to == nullptr && parts.size() == 1)
    return XXH3_64bits_withSeed(parts[0].data(), parts[0].size(), seed);
  XXH3_state_t state = {};
  XXH3_64bits_reset_withSeed(&state, seed);
  for (std::span<const uint8_t> rest : parts) {
    while (!rest.empty()) {
      const std::span<const uint8_t> piece =
          to == nullptr ? rest : rest.first(std::min(rest.size(), kPiece));
      XXH3_64bits_update(&state, piece.data(), piece.size());
      if (to != nullptr) {
        std::memcpy(to, piece.data(), piece.size());
        to += piece.size();
      }
      rest = rest.subspan(piece.size());
    }
  }
  return XXH3_64bits_digest(&state);
}

inline void HashPiece(XXH3_state_t* state, std::span<const uint8_t> piece) {
  XXH3_64bits_update(state, piece.data(), piece.size());
}

}  // namespace
}  // namespace headrace::reader
