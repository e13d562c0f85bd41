// frame_hash_inline.h compiled for AVX2.
#if defined(__x86_64__)
#include <immintrin.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <span>

#if defined(__clang__)
#pragma clang attribute push(__attribute__((target("avx2"))), apply_to = function)
#else
#pragma GCC push_options
#pragma GCC target("avx2")
#endif
#define XXH_VECTOR 2  // XXH_AVX2
#include "reader/pipeline/delivery/frame_hash_inline.h"

namespace headrace::reader {

uint64_t HashPiecesAvx2(std::span<const std::span<const uint8_t>> parts, uint64_t seed,
                        uint8_t* to) {
  return HashPieces(parts, seed, to);
}

void HashPieceAvx2(void* state, std::span<const uint8_t> piece) {
  HashPiece(static_cast<XXH3_state_t*>(state), piece);
}

}  // namespace headrace::reader
#if defined(__clang__)
#pragma clang attribute pop
#else
#pragma GCC pop_options
#endif
#endif
