#include "reader/dwrf/codec.h"

#include <fmt/format.h>
#include <libdeflate.h>
#include <lz4.h>
#include <snappy.h>
#include <zstd.h>

#include <algorithm>
#include <memory>

#include "base/error.h"

namespace headrace::reader::dwrf {
namespace {

struct FreeZstd {
  void operator()(ZSTD_DCtx* context) const { ZSTD_freeDCtx(context); }
};
struct FreeDeflate {
  void operator()(libdeflate_decompressor* context) const { libdeflate_free_decompressor(context); }
};

Error Damaged(const char* codec, const std::string& why) {
  return Error(ExitCode::kBadData, fmt::format("{} cannot decompress it: {}", codec, why));
}

size_t DecompressZstd(std::span<const uint8_t> in, std::span<uint8_t> out) {
  thread_local std::unique_ptr<ZSTD_DCtx, FreeZstd> context(ZSTD_createDCtx());
  if (!context) throw Error(ExitCode::kResources, "no memory for a zstd context");
  const size_t n = ZSTD_decompressDCtx(context.get(), out.data(), out.size(), in.data(), in.size());
  if (ZSTD_isError(n)) throw Damaged("zstd", ZSTD_getErrorName(n));
  return n;
}

size_t DecompressDeflate(std::span<const uint8_t> in, std::span<uint8_t> out, bool gzip) {
  thread_local std::unique_ptr<libdeflate_decompressor, FreeDeflate> context(
      libdeflate_alloc_decompressor());
  if (!context) throw Error(ExitCode::kResources, "no memory for a deflate context");
  size_t n = 0;
  const libdeflate_result result =
      gzip ? libdeflate_gzip_decompress(context.get(), in.data(), in.size(), out.data(), out.size(),
                                        &n)
           : libdeflate_deflate_decompress(context.get(), in.data(), in.size(), out.data(),
                                           out.size(), &n);
  if (result == LIBDEFLATE_INSUFFICIENT_SPACE)
    throw Damaged("deflate", "it is longer than a chunk may be");
  if (result != LIBDEFLATE_SUCCESS) throw Damaged("deflate", "bad data");
  return n;
}

size_t DecompressSnappy(std::span<const uint8_t> in, std::span<uint8_t> out) {
  const char* data = reinterpret_cast<const char*>(in.data());
  size_t n = 0;
  if (!snappy::GetUncompressedLength(data, in.size(), &n)) throw Damaged("snappy", "bad length");
  if (n > out.size()) throw Damaged("snappy", "it is longer than a chunk may be");
  if (!snappy::RawUncompress(data, in.size(), reinterpret_cast<char*>(out.data())))
    throw Damaged("snappy", "bad data");
  return n;
}

size_t DecompressLz4(std::span<const uint8_t> in, std::span<uint8_t> out) {
  const int n =
      LZ4_decompress_safe(reinterpret_cast<const char*>(in.data()),
                          reinterpret_cast<char*>(out.data()), static_cast<int>(in.size()),
                          static_cast<int>(std::min<size_t>(out.size(), LZ4_MAX_INPUT_SIZE)));
  if (n < 0) throw Damaged("lz4", "bad data, or longer than a chunk may be");
  return static_cast<size_t>(n);
}

}  // namespace

size_t Decompress(CompressionKind kind, std::span<const uint8_t> in, std::span<uint8_t> out) {
  switch (kind) {
    case CompressionKind::kZstd:
      return DecompressZstd(in, out);
    case CompressionKind::kZlib:
      return DecompressDeflate(in, out, false);
    case CompressionKind::kGzip:
      return DecompressDeflate(in, out, true);
    case CompressionKind::kSnappy:
      return DecompressSnappy(in, out);
    case CompressionKind::kLz4:
      return DecompressLz4(in, out);
    case CompressionKind::kLzo:
      throw Error(ExitCode::kBadData, "LZO compression is not supported", "",
                  "rewrite the file with zstd");
    case CompressionKind::kNone:
      break;
  }
  throw Error(ExitCode::kBadData, "a compressed chunk in a file without compression");
}

std::optional<uint64_t> StatedSize(CompressionKind kind, std::span<const uint8_t> in) {
  if (kind == CompressionKind::kZstd) {
    const unsigned long long size = ZSTD_getFrameContentSize(in.data(), in.size());
    if (size == ZSTD_CONTENTSIZE_UNKNOWN || size == ZSTD_CONTENTSIZE_ERROR) return std::nullopt;
    return size;
  }
  size_t size = 0;
  if (kind == CompressionKind::kSnappy &&
      snappy::GetUncompressedLength(reinterpret_cast<const char*>(in.data()), in.size(), &size)) {
    return size;
  }
  return std::nullopt;
}

namespace {

// Most output bytes per input byte: deflate's 258-byte match in 2 bits; lz4's length byte of 255;
// snappy's 64-byte copy in 3 bytes; zstd's run-length block of 128 KiB in 4 bytes.
uint64_t MaxRatio(CompressionKind kind) {
  switch (kind) {
    case CompressionKind::kZlib:
    case CompressionKind::kGzip:
      return 1032;
    case CompressionKind::kLz4:
      return 256;
    case CompressionKind::kSnappy:
      return 32;
    case CompressionKind::kZstd:
      return 32768;
    default:
      return 1;
  }
}

}  // namespace

uint64_t MaxDecompressedSize(CompressionKind kind, std::span<const uint8_t> in, uint64_t limit) {
  const uint64_t bound = std::min<uint64_t>(limit, (in.size() + 16) * MaxRatio(kind));
  // A zstd unit may be several frames, of which the first alone states this size; a limit that
  // turns out too small is an error of that unit, never an overrun.
  const auto stated = StatedSize(kind, in);
  return stated ? std::min(bound, *stated) : bound;
}

uint64_t MaxExpansion(CompressionKind kind, uint64_t stored, uint64_t block_size) {
  if (kind == CompressionKind::kNone) return stored;
  const unsigned __int128 by_ratio = static_cast<unsigned __int128>(stored) * MaxRatio(kind);
  // A chunk has at least 4 stored bytes and unpacks to at most a block, or is original.
  const unsigned __int128 by_chunks =
      static_cast<unsigned __int128>(stored / 4 + 1) * block_size + stored;
  const unsigned __int128 bound = std::min(by_ratio, by_chunks);
  return bound > UINT64_MAX / 2 ? UINT64_MAX / 2 : static_cast<uint64_t>(bound);
}

const char* CompressionKindName(CompressionKind kind) {
  constexpr const char* kNames[] = {"NONE", "ZLIB", "SNAPPY", "LZO", "ZSTD", "LZ4", "GZIP"};
  return kNames[static_cast<size_t>(kind)];
}

const char* CodecName(CompressionKind kind) {
  constexpr const char* kNames[] = {"none", "zlib", "snappy", "lzo", "zstd", "lz4", "gzip"};
  return kNames[static_cast<size_t>(kind)];
}

}  // namespace headrace::reader::dwrf
