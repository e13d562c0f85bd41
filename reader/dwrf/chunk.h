// Chunk framing (FORMAT 4). A framed section is a sequence of chunks:
//
//   3 bytes  little-endian h: (length << 1) | is_original
//   length   payload: the plain bytes when original, else one independent compressed unit
//
// Files with compression NONE have no framing: their sections are the bytes themselves.
// Unframe undoes a whole section at once; ByteStream (byte_stream.h) reads one piece by piece.
#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "base/buffer.h"
#include "reader/dwrf/codec.h"
#include "reader/dwrf/stripe.h"
#include "reader/dwrf/tail.h"

namespace headrace::reader::dwrf {

// What a section is and how it is stored. The views must outlive the context.
struct ChunkContext {
  static constexpr uint64_t kMaxStream = uint64_t{1} << 31;  // readers and writers of the field stop there too

  CompressionKind compression = CompressionKind::kNone;
  uint64_t block_size = kDefaultBlockSize;
  std::string_view file;              // for messages
  std::string_view section;           // "footer", "stripe footer"; empty for streams
  uint32_t stripe = 0;                // for messages
  const StreamInfo* stream = nullptr; // for messages, null for other sections
  uint64_t file_offset = 0;           // of the section's first stored byte
  uint64_t max_bytes = kMaxStream;    // Unframe refuses sections that unpack to more

  // "rm1.dwrf: stripe 3, stream DATA of node 8 sequence 5 at byte 91204"; `stored` is an offset in the section.
  std::string Where(uint64_t stored) const;
};

ChunkContext StreamContext(const FileTail& tail, std::string_view file, const Stripe& stripe, const StreamInfo& stream);
// For metadata sections: bounded to 1 MiB plus 256 times the stored bytes.
ChunkContext SectionContext(const FileTail& tail, std::string_view file, std::string_view section, uint64_t file_offset,
                            uint64_t stored);

struct ChunkHeader {
  static constexpr uint64_t kBytes = 3;
  uint32_t length = 0;
  bool is_original = false;
};
inline ChunkHeader ParseChunkHeader(const uint8_t* p) {
  const uint32_t h = p[0] | (uint32_t{p[1]} << 8) | (uint32_t{p[2]} << 16);
  return {h >> 1, (h & 1) != 0};
}

// Replaces `out` by the section's bytes. Memory grows with what is really unpacked. Throws Error kBadData with the byte offset
// for framing that does not fit and for damaged payloads.
void Unframe(std::span<const uint8_t> stored, const ChunkContext& context, Buffer* out);

}  // namespace headrace::reader::dwrf
