#include "reader/dwrf/encode/chunk_encoder.h"

#include <libdeflate.h>
#include <lz4.h>
#include <snappy.h>
#include <zstd.h>

#include <algorithm>
#include <map>

#include "base/check.h"

namespace headrace::reader::dwrf {

struct ChunkEncoder::Contexts {
  ZSTD_CCtx* zstd = nullptr;
  std::map<int, libdeflate_compressor*> deflate;  // by level
  std::vector<char> snappy;
  ~Contexts() {
    ZSTD_freeCCtx(zstd);
    for (const auto& [level, compressor] : deflate) libdeflate_free_compressor(compressor);
  }
};

ChunkEncoder::ChunkEncoder(const WriterOptions& options)
    : compression_(options.compression),
      level_(options.level),
      goal_(options.ratio_by_goal ? options.goal : LayoutGoal::kFixed),
      min_ratio_(options.min_ratio),
      min_bytes_(options.min_compress_bytes),
      block_size_(options.block_size),
      contexts_(std::make_unique<Contexts>()) {
  if (compression_ == CompressionKind::kZstd) contexts_->zstd = ZSTD_createCCtx();
}

ChunkEncoder::~ChunkEncoder() = default;

size_t ChunkEncoder::Compress(std::span<const uint8_t> in, int level, std::span<uint8_t> out) {
  switch (compression_) {
    case CompressionKind::kZstd: {
      const size_t n =
          ZSTD_compressCCtx(contexts_->zstd, out.data(), out.size(), in.data(), in.size(), level);
      return ZSTD_isError(n) ? 0 : n;
    }
    case CompressionKind::kZlib: {
      libdeflate_compressor*& compressor = contexts_->deflate[level];
      if (compressor == nullptr) compressor = libdeflate_alloc_compressor(level);
      return libdeflate_deflate_compress(compressor, in.data(), in.size(), out.data(), out.size());
    }
    case CompressionKind::kLz4:
      return static_cast<size_t>(LZ4_compress_default(
          reinterpret_cast<const char*>(in.data()), reinterpret_cast<char*>(out.data()),
          static_cast<int>(in.size()), static_cast<int>(out.size())));
    case CompressionKind::kSnappy: {
      // Snappy wants room for its worst case, whatever the result.
      contexts_->snappy.resize(snappy::MaxCompressedLength(in.size()));
      size_t n = 0;
      snappy::RawCompress(reinterpret_cast<const char*>(in.data()), in.size(),
                          contexts_->snappy.data(), &n);
      if (n > out.size()) return 0;
      std::copy_n(contexts_->snappy.data(), n, out.data());
      return n;
    }
    default:
      HR_CHECK(false, "the layout policy admits only codecs with an encoder");
  }
  return 0;
}

ChunkMap ChunkEncoder::Encode(std::span<const uint8_t> plain, const ChunkPacking& packing,
                              ByteSink* sink, const ChunkSeal* seal) {
  ChunkMap map;
  if (compression_ == CompressionKind::kNone && seal == nullptr) {
    sink->Append(plain);
    return map;
  }
  map.block_size = block_size_;
  const size_t base = sink->size();
  const size_t tag_bytes = seal == nullptr ? 0 : seal->cipher->tag_bytes();
  const bool compress = packing.compress && compression_ != CompressionKind::kNone;
  const int level = packing.level != 0 ? packing.level : level_;
  const double min_ratio = packing.min_ratio != 0 ? packing.min_ratio : min_ratio_;
  for (size_t at = 0; at < plain.size(); at += block_size_) {
    const auto chunk = plain.subspan(at, std::min<size_t>(block_size_, plain.size() - at));
    map.starts.push_back(sink->size() - base);
    uint8_t* header = sink->Reserve(3 + chunk.size() + tag_bytes);
    size_t size = 0;
    if (compress && chunk.size() >= min_bytes_) {
      const auto worth = goal_ != LayoutGoal::kFixed && packing.min_ratio == 0
                             ? MostStoredBytes(goal_, compression_, chunk.size())
                             : static_cast<size_t>(static_cast<double>(chunk.size()) / min_ratio);
      if (worth > 0) size = Compress(chunk, level, {header + 3, std::min(worth, chunk.size() - 1)});
      if (size > 0) map.decompress_ns += DecompressNs(compression_, size, chunk.size());
    }
    const bool original = size == 0;
    if (original) {
      size = chunk.size();
      std::copy(chunk.begin(), chunk.end(), header + 3);
    }
    if (seal != nullptr) {
      ChunkPlace place = seal->place;
      place.position = static_cast<uint32_t>(map.starts.back());
      place.original = original;
      seal->cipher->Encrypt(place, {header + 3, size}, header + 3);
      size += tag_bytes;
    }
    const size_t word = size << 1 | (original ? 1 : 0);
    header[0] = static_cast<uint8_t>(word);
    header[1] = static_cast<uint8_t>(word >> 8);
    header[2] = static_cast<uint8_t>(word >> 16);
    sink->Finish(header + 3 + size);
  }
  map.starts.push_back(sink->size() - base);
  return map;
}

}  // namespace headrace::reader::dwrf
