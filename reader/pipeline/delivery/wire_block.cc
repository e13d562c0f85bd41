#include "reader/pipeline/delivery/wire_block.h"

#include <fmt/format.h>
#include <lz4.h>
#include <zstd.h>

#include <algorithm>
#include <cstdlib>

#include "base/check.h"
#include "base/error.h"
#include "reader/dwrf/codec.h"
#include "reader/pipeline/delivery/frame_layout.h"
#include "reader/pipeline/delivery/narrow.h"

namespace headrace::reader {
namespace {

constexpr int kZstdLevel = 1;
constexpr uint32_t kLz4Block = 1, kZstdBlock = 2, kNarrowed = 256;

dwrf::CompressionKind KindOf(uint32_t codec) {
  return codec == kLz4Block ? dwrf::CompressionKind::kLz4 : dwrf::CompressionKind::kZstd;
}

void Enlarge(size_t bytes, std::vector<uint8_t>* memory) {
  if (memory->size() < bytes) memory->resize(bytes);
}

}  // namespace

struct BlockPacker::Contexts {
  ~Contexts() {
    ZSTD_freeCCtx(zstd);
    std::free(lz4);
  }
  ZSTD_CCtx* zstd = nullptr;
  void* lz4 = nullptr;
};

BlockPacker::BlockPacker() : contexts_(std::make_unique<Contexts>()) {}
BlockPacker::~BlockPacker() = default;

// 0: it would not fit.
size_t BlockPacker::Compress(std::span<const uint8_t> plain, bool zstd, std::span<uint8_t> to) {
  if (!zstd) {
    constexpr int kAcceleration = 1;
    if (contexts_->lz4 == nullptr)
      contexts_->lz4 = std::malloc(static_cast<size_t>(LZ4_sizeofState()));
    if (contexts_->lz4 == nullptr) throw Error(ExitCode::kResources, "no memory for lz4");
    return static_cast<size_t>(LZ4_compress_fast_extState(
        contexts_->lz4, reinterpret_cast<const char*>(plain.data()),
        reinterpret_cast<char*>(to.data()), static_cast<int>(plain.size()),
        static_cast<int>(to.size()), kAcceleration));
  }
  if (contexts_->zstd == nullptr) contexts_->zstd = ZSTD_createCCtx();
  if (contexts_->zstd == nullptr) throw Error(ExitCode::kResources, "no memory for zstd");
  const size_t size = ZSTD_compressCCtx(contexts_->zstd, to.data(), to.size(), plain.data(),
                                        plain.size(), kZstdLevel);
  return ZSTD_isError(size) ? 0 : size;
}

WireBlock BlockPacker::Pack(std::span<const uint8_t> plain, WireCodec codec,
                            std::span<const uint8_t>* stored) {
  HR_CHECK(!plain.empty() && plain.size() <= kWireBlockBytes, "a block");
  WireBlock block = {0, static_cast<uint32_t>(plain.size()), 0};
  *stored = plain;
  if (codec >= WireCodec::kNarrow) {
    Enlarge(NarrowRoom(plain.size()), &narrowed_);
    if (const size_t size = Narrow(plain, narrowed_.data()); size > 0) {
      block.codec = kNarrowed;
      *stored = {narrowed_.data(), size};
    }
  }
  if (codec >= WireCodec::kLz4) {
    const bool is_zstd = codec == WireCodec::kZstd;
    const size_t most = stored->size() - stored->size() / 8 - 1;
    Enlarge(most, &compressed_);
    const size_t size = Compress(*stored, is_zstd, {compressed_.data(), most});
    if (size > 0) {
      block.codec |= is_zstd ? kZstdBlock : kLz4Block;
      *stored = {compressed_.data(), size};
    }
  }
  block.stored = static_cast<uint32_t>(stored->size());
  return block;
}

void BlockUnpacker::Check(const WireBlock& block, uint64_t left) {
  const uint32_t codec = block.codec & ~kNarrowed;
  if (codec > kZstdBlock)
    ThrowBadFrame(fmt::format("a block of a frame has the unknown codec {}", block.codec));
  // What grows is not packed.
  const bool is_plain = block.codec == 0;
  if (block.plain == 0 || block.plain > std::min(kWireBlockBytes, left) ||
      (is_plain ? block.stored != block.plain : block.stored >= block.plain))
    ThrowBadFrame(fmt::format("a block of a frame claims {} bytes in {}, and {} are due",
                              block.plain, block.stored, left));
}

std::span<uint8_t> BlockUnpacker::Room(const WireBlock& block) {
  Enlarge(block.stored, &stored_);
  return {stored_.data(), block.stored};
}

void BlockUnpacker::Unpack(const WireBlock& block, std::span<uint8_t> plain) {
  std::span<const uint8_t> bytes(stored_.data(), block.stored);
  const bool is_narrowed = (block.codec & kNarrowed) != 0;
  if (const uint32_t codec = block.codec & ~kNarrowed; codec != 0) {
    if (is_narrowed) Enlarge(NarrowRoom(block.plain), &narrowed_);
    const std::span<uint8_t> to =
        is_narrowed ? std::span<uint8_t>(narrowed_.data(), NarrowRoom(block.plain)) : plain;
    const size_t got = dwrf::Decompress(KindOf(codec), bytes, to);
    if (!is_narrowed && got != plain.size())
      ThrowBadFrame(
          fmt::format("a block of a frame has {} bytes and claims {}", got, plain.size()));
    bytes = to.first(got);
  }
  if (is_narrowed && !Widen(bytes, plain))
    ThrowBadFrame(
        fmt::format("{} bytes of a block are not {} narrowed", bytes.size(), plain.size()));
}

}  // namespace headrace::reader
