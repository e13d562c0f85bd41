// Block codecs behind one call. Contexts are kept per thread.
#pragma once
#include <cstdint>
#include <optional>
#include <span>

namespace headrace::reader::dwrf {

// Numbers are DWRF's (Apache ORC swaps 4 and 5).
enum class CompressionKind : uint8_t { kNone = 0, kZlib, kSnappy, kLzo, kZstd, kLz4, kGzip };
const char* CompressionKindName(CompressionKind kind);  // "NONE", "ZLIB", ...
// As options and our own files name it: "none", "zlib", "snappy", "lzo", "zstd", "lz4", "gzip".
const char* CodecName(CompressionKind kind);

// Decompresses one unit into `out` and returns the bytes written, at most out.size(). Throws Error
// kBadData when the unit is damaged or would not fit, kUsage for kLzo and kNone (which have no
// decoder here); the caller adds the place.
size_t Decompress(CompressionKind kind, std::span<const uint8_t> in, std::span<uint8_t> out);

// What to allocate for `in` decompressed: an upper bound, at most `limit`. Exact where the unit
// states its size (usual for zstd, always for snappy), so that small units get small buffers.
uint64_t MaxDecompressedSize(CompressionKind kind, std::span<const uint8_t> in, uint64_t limit);
// The size the unit states, unchecked; none where it does not.
std::optional<uint64_t> StatedSize(CompressionKind kind, std::span<const uint8_t> in);
// The most bytes that `stored` bytes of whole chunks can unpack to.
uint64_t MaxExpansion(CompressionKind kind, uint64_t stored, uint64_t block_size);

}  // namespace headrace::reader::dwrf
