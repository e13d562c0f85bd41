#include "reader/pipeline/delivery/packed_frame.h"

#include <fmt/format.h>
#include <lz4.h>
#include <zstd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>

#include "base/error.h"
#include "reader/dwrf/codec.h"
#include "reader/pipeline/delivery/frame_layout.h"

namespace headrace::reader {
namespace {

constexpr int kZstdLevel = 1;
// Memory for a plain body at first: so much, or that many times what came.
constexpr uint64_t kFirstBytes = uint64_t{1} << 20, kFirstTimes = 16;

struct BlockHeader {
  uint32_t codec = 0;
  uint32_t plain = 0, stored = 0;  // bytes
};
static_assert(sizeof(BlockHeader) == 12);

dwrf::CompressionKind KindOf(uint32_t codec) {
  switch (static_cast<WireCodec>(codec)) {
    case WireCodec::kLz4:
      return dwrf::CompressionKind::kLz4;
    case WireCodec::kZstd:
      return dwrf::CompressionKind::kZstd;
    case WireCodec::kRaw:
      break;
  }
  ThrowBadFrame(fmt::format("a block of a frame has the unknown codec {}", codec));
}

}  // namespace

struct FramePacker::Contexts {
  ~Contexts() {
    ZSTD_freeCCtx(zstd);
    std::free(lz4);
  }
  ZSTD_CCtx* zstd = nullptr;
  void* lz4 = nullptr;
};

FramePacker::FramePacker() : contexts_(std::make_unique<Contexts>()) {}
FramePacker::~FramePacker() = default;

// 0: it would not fit.
size_t FramePacker::Compress(std::span<const uint8_t> plain, WireCodec codec,
                             std::span<uint8_t> to) {
  if (codec == WireCodec::kLz4) {
    if (contexts_->lz4 == nullptr)
      contexts_->lz4 = std::malloc(static_cast<size_t>(LZ4_sizeofState()));
    if (contexts_->lz4 == nullptr) throw Error(ExitCode::kResources, "no memory for lz4");
    constexpr int kAcceleration = 1;
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

void FramePacker::AddBlock(std::span<const uint8_t> plain, WireCodec codec) {
  // What shrinks by less than an eighth is not worth its unpacking.
  const size_t most = plain.size() - plain.size() / 8;
  uint8_t* const to = packed_.data() + have_ + sizeof(BlockHeader);
  size_t stored = Compress(plain, codec, {to, most});
  if (stored == 0) {
    codec = WireCodec::kRaw;
    stored = plain.size();
    std::memcpy(to, plain.data(), stored);
  }
  const BlockHeader header = {static_cast<uint32_t>(codec), static_cast<uint32_t>(plain.size()),
                              static_cast<uint32_t>(stored)};
  std::memcpy(packed_.data() + have_, &header, sizeof header);
  have_ += sizeof header + stored;
}

Frame FramePacker::Pack(const Frame& frame, WireCodec codec) {
  const uint64_t plain = frame.header.body_bytes;
  const uint64_t blocks = plain / kPackedBlockBytes + 1;  // all but the last are whole
  packed_.resize(sizeof plain + plain + blocks * sizeof(BlockHeader) + kFrameAlignment);
  std::memcpy(packed_.data(), &plain, sizeof plain);
  have_ = sizeof plain;
  gathered_.clear();
  const auto flush = [&] {
    if (!gathered_.empty()) AddBlock({gathered_.data(), gathered_.size()}, codec);
    gathered_.clear();
  };
  for (std::span<const uint8_t> part : frame.parts) {
    while (!part.empty()) {
      // Whole blocks from where they lie.
      if (gathered_.empty() && part.size() >= kPackedBlockBytes) {
        AddBlock(part.first(kPackedBlockBytes), codec);
        part = part.subspan(kPackedBlockBytes);
        continue;
      }
      const auto piece = part.first(std::min(part.size(), kPackedBlockBytes - gathered_.size()));
      gathered_.insert(gathered_.end(), piece.begin(), piece.end());
      part = part.subspan(piece.size());
      if (gathered_.size() == kPackedBlockBytes) flush();
    }
  }
  flush();
  const uint64_t padded = PaddedBytes(have_);
  std::memset(packed_.data() + have_, 0, padded - have_);
  Frame packed;
  packed.header = frame.header;
  packed.header.flags |= kFramePacked;
  packed.header.body_bytes = padded;
  packed.parts.push_back({packed_.data(), padded});
  return packed;
}

void FramePacker::Release() {
  packed_ = {};
  gathered_ = {};
}

std::shared_ptr<Array<uint8_t>> UnpackBody(std::span<const uint8_t> packed) {
  uint64_t plain = 0;
  if (packed.size() < sizeof plain) ThrowBadFrame("a compressed frame ends within its length");
  std::memcpy(&plain, packed.data(), sizeof plain);
  packed = packed.subspan(sizeof plain);
  if (plain > kMaxFrameBytes || plain % kFrameAlignment != 0)
    ThrowBadFrame(fmt::format("a compressed frame claims a body of {} bytes", plain));
  auto body = std::make_shared<Array<uint8_t>>(
      std::min(plain, std::max(kFirstBytes, kFirstTimes * packed.size())));
  uint64_t have = 0;
  while (have < plain) {
    BlockHeader block;
    if (packed.size() < sizeof block) ThrowBadFrame("a compressed frame ends within a block");
    std::memcpy(&block, packed.data(), sizeof block);
    packed = packed.subspan(sizeof block);
    if (block.plain == 0 || block.plain > std::min(kPackedBlockBytes, plain - have) ||
        block.stored > packed.size())
      ThrowBadFrame(
          fmt::format("a block of a frame claims {} bytes in {}", block.plain, block.stored));
    if (have + block.plain > body->size())
      body->resize(std::min(plain, std::max(have + block.plain, 2 * have)));
    const auto stored = packed.first(block.stored);
    const std::span<uint8_t> to(body->data() + have, block.plain);
    packed = packed.subspan(block.stored);
    size_t got = block.stored;
    if (block.codec != static_cast<uint32_t>(WireCodec::kRaw)) {
      got = dwrf::Decompress(KindOf(block.codec), stored, to);
    } else if (got == to.size()) {
      std::memcpy(to.data(), stored.data(), got);
    }
    if (got != to.size())
      ThrowBadFrame(fmt::format("a block of a frame has {} bytes and claims {}", got, block.plain));
    have += block.plain;
  }
  if (packed.size() >= kFrameAlignment)
    ThrowBadFrame("a compressed frame is longer than its blocks");
  return body;
}

}  // namespace headrace::reader
