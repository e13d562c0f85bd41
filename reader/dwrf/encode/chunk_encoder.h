// ChunkEncoder: the chunk framing of stored sections, and the choice per chunk between compressed
// and original. Keeps the codec's context between calls; one thread at a time. Its reading half is
// reader/dwrf/chunk.h.
//
//   stored section = chunks of: 3 bytes little-endian (payload length << 1 | original), payload
//   with compression none a section is its plain bytes, unless it is encrypted: payloads are
//   encrypted after they were compressed
#pragma once
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "reader/dwrf/encode/byte_sink.h"
#include "reader/dwrf/layout_policy.h"

namespace headrace::reader::dwrf {

// Where the chunks of a stored stream begin: turns a place in its plain bytes into a stored
// position.
struct ChunkMap {
  uint64_t block_size = 0;  // 0: not framed
  std::vector<uint64_t>
      starts;                // stored offset of each chunk header, and the stream's stored length
  double decompress_ns = 0;  // of the chunks that are compressed (layout_cost.h)
  // Appends the one or two numbers of a byte position.
  template <class Positions>
  void AddPosition(uint64_t byte, Positions* positions) const {
    if (block_size == 0) {
      positions->Add(byte);
      return;
    }
    positions->Add(starts[byte / block_size]);
    positions->Add(byte % block_size);
  }
};

// How a section is encrypted; `place` as for reading (ChunkContext).
struct ChunkSeal {
  ChunkCipher* cipher = nullptr;
  ChunkPlace place;
};

// How hard to compress; a value of 0 means the file's choice.
struct ChunkPacking {
  bool compress = true;
  int level = 0;
  double min_ratio = 0;
};

class ChunkEncoder {
 public:
  explicit ChunkEncoder(const WriterOptions& options);
  ~ChunkEncoder();

  // Appends `plain` framed. A chunk is compressed where `packing` says so and it then shrinks by
  // the ratio, or enough for the goal; it is encrypted where `seal` is not null.
  ChunkMap Encode(std::span<const uint8_t> plain, const ChunkPacking& packing, ByteSink* sink,
                  const ChunkSeal* seal = nullptr);
  ChunkMap Encode(std::span<const uint8_t> plain, bool compress, ByteSink* sink,
                  const ChunkSeal* seal = nullptr) {
    return Encode(plain, ChunkPacking{compress, 0, 0}, sink, seal);
  }

 private:
  struct Contexts;
  // Compressed size, or 0 where it would exceed `out`.
  size_t Compress(std::span<const uint8_t> in, int level, std::span<uint8_t> out);

  CompressionKind compression_;
  int level_;
  LayoutGoal goal_;
  double min_ratio_;
  uint64_t min_bytes_, block_size_;
  std::unique_ptr<Contexts> contexts_;
};

}  // namespace headrace::reader::dwrf
