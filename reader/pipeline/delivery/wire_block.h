// Blocks: a frame's body in pieces, each made smaller for itself, on its way through a socket. A
// frame that has kFramePacked is followed by blocks until they make up its body:
//
//   u32 codec | u32 bytes, plain | u32 bytes, stored | the stored bytes
//
// Codec: 0 none, 1 lz4, 2 zstd; and 256 if what it gives is narrowed (narrow.h). One thread. What
// packs or unpacks keeps up to three blocks of memory, outside of what a pipeline may take.
#pragma once
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "reader/pipeline/delivery/wire_codec.h"

namespace headrace::reader {

constexpr uint64_t kWireBlockBytes = uint64_t{512} << 10;  // plain, at most

struct WireBlock {
  uint32_t codec = 0;
  uint32_t plain = 0, stored = 0;  // bytes
};
static_assert(sizeof(WireBlock) == 12);

class BlockPacker {
 public:
  BlockPacker();
  ~BlockPacker();
  BlockPacker(const BlockPacker&) = delete;
  BlockPacker& operator=(const BlockPacker&) = delete;

  // Makes `plain` smaller as the codec says; `stored` is where the result lies until the next call:
  // in `plain` itself if it does not shrink by an eighth. Throws Error kResources.
  WireBlock Pack(std::span<const uint8_t> plain, WireCodec codec, std::span<const uint8_t>* stored);

 private:
  struct Contexts;
  size_t Compress(std::span<const uint8_t> plain, bool zstd, std::span<uint8_t> to);

  std::unique_ptr<Contexts> contexts_;
  std::vector<uint8_t> narrowed_, compressed_;  // as long as they ever had to be
};

class BlockUnpacker {
 public:
  // Throws Error kBadData for a block that claims more than `left` bytes, or cannot be one.
  static void Check(const WireBlock& block, uint64_t left);
  // Whether the stored bytes are the plain ones.
  static bool IsPlain(const WireBlock& block) { return block.codec == 0; }
  // Where the block's stored bytes go; then Unpack makes its plain ones of them. Throws Error
  // kBadData when they are damaged; `plain` then holds anything.
  std::span<uint8_t> Room(const WireBlock& block);
  void Unpack(const WireBlock& block, std::span<uint8_t> plain);

 private:
  std::vector<uint8_t> stored_, narrowed_;  // as long as they ever had to be
};

}  // namespace headrace::reader
