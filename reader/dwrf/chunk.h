// Chunk framing: a stored section is a sequence of chunks, each a 3-byte header (length << 1 |
// is_original) and its payload. With compression NONE there is no framing, unless the section is
// encrypted: payloads are encrypted one by one, after compression.
#pragma once
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "base/buffer.h"
#include "reader/dwrf/codec.h"
#include "reader/dwrf/crypto/cipher.h"

namespace headrace::reader::dwrf {

// How a section is stored and where it is, for unframing and for messages.
struct ChunkContext {
  CompressionKind compression = CompressionKind::kNone;
  uint64_t block_size = 0;
  std::string where;         // "rm1.dwrf: stripe 3, stream DATA of node 12 sequence 4"
  uint64_t file_offset = 0;  // of the section's first byte
  std::shared_ptr<const DataKey> key = nullptr;  // null: not encrypted
  // With a key: place of the section, without the chunk's own `position` and `original`.
  ChunkPlace place = {};

  bool framed() const { return compression != CompressionKind::kNone || key != nullptr; }
};

struct ChunkHeader {
  uint32_t length = 0;  // payload bytes
  bool original = false;
};
constexpr size_t kChunkHeaderBytes = 3;
inline ChunkHeader ParseChunkHeader(const uint8_t* p) {
  const uint32_t h = p[0] | p[1] << 8 | p[2] << 16;
  return {h >> 1, (h & 1) != 0};
}

// Decrypts the payload of the chunk whose header is `position` bytes into the section, in place or
// elsewhere; returns the plain bytes. Throws Error kBadData where it was changed.
std::span<uint8_t> DecryptChunk(const ChunkContext& context, ChunkCipher* cipher, uint64_t position,
                                bool original, std::span<const uint8_t> payload, uint8_t* out);

// The largest footer or stripe footer, stored or unframed. Schemas of many thousand features need
// megabytes. A limit is needed because a file can claim any length, and protobuf counts in 31 bits.
constexpr uint64_t kMaxMetadataBytes = 256 << 20;
// The most that `stored` bytes of metadata can unframe to: they compress to about a tenth, not to a
// thousandth.
uint64_t MaxMetadataBytes(uint64_t stored);
// Throws Error kBadData for metadata (`where`, at `offset` of the file) whose stored length exceeds
// kMaxMetadataBytes. Call it before reading the bytes.
void CheckMetadataBytes(uint64_t stored, const std::string& where, uint64_t offset);

// The whole section, unframed, into `out` (its size becomes the uncompressed length). `max_bytes`
// bounds the result. Throws Error kBadData with the byte offset of the chunk that is wrong.
void Unframe(std::span<const uint8_t> stored, const ChunkContext& context, Buffer* out,
             uint64_t max_bytes = UINT64_MAX);

}  // namespace headrace::reader::dwrf
