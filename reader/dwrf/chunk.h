// Chunk framing: a stored section is a sequence of chunks, each a 3-byte header (length << 1 |
// is_original) and its payload. With compression NONE there is no framing.
#pragma once
#include <cstdint>
#include <span>
#include <string>

#include "base/buffer.h"
#include "reader/dwrf/codec.h"

namespace headrace::reader::dwrf {

// What a section is and where, for unframing and for messages.
struct ChunkContext {
  CompressionKind compression = CompressionKind::kNone;
  uint64_t block_size = 0;
  std::string where;         // "rm1.dwrf: stripe 3, stream DATA of node 12 sequence 4"
  uint64_t file_offset = 0;  // of the section's first byte
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

// The whole section, unframed, into `out` (its size becomes the uncompressed length). `max_bytes`
// bounds the result. Throws Error kBadData with the byte offset of the chunk that is wrong.
void Unframe(std::span<const uint8_t> stored, const ChunkContext& context, Buffer* out,
             uint64_t max_bytes = UINT64_MAX);

// The same chunk by chunk, in bounded memory, for streams of any length. `stored` must outlive the
// reader.
class ChunkReader {
 public:
  ChunkReader(std::span<const uint8_t> stored, ChunkContext context);
  // The next chunk's bytes, valid until the next call; false at the end. Empty chunks are skipped.
  bool Next(std::span<const uint8_t>* chunk);
  // Continues at the chunk whose header is at `stored_offset`. Throws Error kBadData past the end.
  void Seek(uint64_t stored_offset);
  uint64_t stored_position() const { return position_; }
  const ChunkContext& context() const { return context_; }

 private:
  std::span<const uint8_t> stored_;
  ChunkContext context_;
  uint64_t position_ = 0;
  Buffer chunk_;
};

}  // namespace headrace::reader::dwrf
