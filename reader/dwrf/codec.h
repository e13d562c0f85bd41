// One compressed chunk payload to its bytes, for every codec of FORMAT section 4. Thread-safe; contexts are kept per thread.
#pragma once
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "reader/dwrf/tail.h"

namespace headrace::reader::dwrf {

// Decompresses `in` into `out` and returns the bytes written, at most out.size(). Throws Error kBadData (without a place) when
// the payload is damaged or does not fit, and for LZO, which is not supported.
size_t Decompress(CompressionKind kind, std::span<const uint8_t> in, std::span<uint8_t> out);

// An upper bound of the size of `in` decompressed, at most `limit`: what to allocate. Exact where the payload states its
// size (usual for zstd and snappy).
uint64_t MaxDecompressedSize(CompressionKind kind, std::span<const uint8_t> in, uint64_t limit);
// The exact size, where the payload states it.
std::optional<uint64_t> StatedSize(CompressionKind kind, std::span<const uint8_t> in);
// The most bytes `stored` bytes of whole chunks can unpack to.
uint64_t MaxExpansion(CompressionKind kind, uint64_t stored, uint64_t block_size);

}  // namespace headrace::reader::dwrf
