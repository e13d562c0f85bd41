#include "reader/dwrf/chunk.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "base/error.h"

namespace headrace::reader::dwrf {
namespace {

Error ChunkError(const ChunkContext& context, uint64_t position, const std::string& what) {
  return Error(ExitCode::kBadData, what,
               fmt::format("{} at byte {}", context.where, context.file_offset + position),
               "the file is truncated or damaged");
}

// The header at `position`, checked against what remains.
ChunkHeader CheckedHeader(std::span<const uint8_t> stored, uint64_t position,
                          const ChunkContext& context) {
  const uint64_t left = stored.size() - position;
  if (left < kChunkHeaderBytes)
    throw ChunkError(context, position,
                     fmt::format("{} bytes left for a 3-byte chunk header", left));
  const ChunkHeader header = ParseChunkHeader(stored.data() + position);
  if (header.length > left - kChunkHeaderBytes) {
    throw ChunkError(context, position,
                     fmt::format("chunk length {} exceeds the {} bytes left", header.length,
                                 left - kChunkHeaderBytes));
  }
  return header;
}

// Bytes of room one compressed chunk may need.
uint64_t ChunkRoom(const ChunkContext& context, std::span<const uint8_t> payload) {
  return std::max<uint64_t>(MaxDecompressedSize(context.compression, payload, context.block_size),
                            1);
}

size_t DecompressChunk(const ChunkContext& context, uint64_t position,
                       std::span<const uint8_t> payload, std::span<uint8_t> out) {
  try {
    return Decompress(context.compression, payload, out);
  } catch (const Error& error) {
    if (error.code() != ExitCode::kBadData) throw;
    throw ChunkError(context, position, error.fact());
  }
}

std::unique_ptr<ChunkCipher> CipherOf(const ChunkContext& context) {
  if (context.key == nullptr) return nullptr;
  return std::make_unique<ChunkCipher>(context.key->cipher, context.key->key);
}

void CheckOriginal(const ChunkContext& context, uint64_t position, bool original) {
  if (original || context.compression != CompressionKind::kNone) return;
  throw ChunkError(context, position, "a compressed chunk in a file without compression");
}

}  // namespace

std::span<uint8_t> DecryptChunk(const ChunkContext& context, ChunkCipher* cipher, uint64_t position,
                                bool original, std::span<const uint8_t> payload, uint8_t* out) {
  CheckOriginal(context, position, original);
  ChunkPlace place = context.place;
  place.position = static_cast<uint32_t>(position);
  place.original = original;
  if (!cipher->Decrypt(place, payload, out))
    throw Error(ExitCode::kBadData, "an encrypted chunk is not as it was written",
                fmt::format("{} at byte {}", context.where, context.file_offset + position),
                "the file is damaged or was tampered with");
  return {out, payload.size() - cipher->tag_bytes()};
}

uint64_t MaxMetadataBytes(uint64_t stored) {
  const uint64_t most = uint64_t{1} << 20;
  return stored > kMaxMetadataBytes / 256 ? kMaxMetadataBytes
                                          : std::min(kMaxMetadataBytes, most + 256 * stored);
}

void CheckMetadataBytes(uint64_t stored, const std::string& where, uint64_t offset) {
  if (stored <= kMaxMetadataBytes) return;
  throw Error(ExitCode::kBadData,
              fmt::format("{} bytes where at most {} are supported", stored, kMaxMetadataBytes),
              fmt::format("{} at byte {}", where, offset), "the file is damaged");
}

void Unframe(std::span<const uint8_t> stored, const ChunkContext& context, Buffer* out,
             uint64_t max_bytes) {
  out->Resize(0);
  if (!context.framed()) {
    if (stored.size() > max_bytes)
      throw ChunkError(
          context, 0,
          fmt::format("{} bytes where at most {} make sense", stored.size(), max_bytes));
    out->Resize(stored.size());
    if (!stored.empty()) std::memcpy(out->data(), stored.data(), stored.size());
    return;
  }
  const std::unique_ptr<ChunkCipher> cipher = CipherOf(context);
  Buffer plain;
  uint64_t position = 0, size = 0;
  while (position < stored.size()) {
    const ChunkHeader header = CheckedHeader(stored, position, context);
    std::span<const uint8_t> payload = stored.subspan(position + kChunkHeaderBytes, header.length);
    if (cipher) {
      plain.Resize(payload.size());
      payload =
          DecryptChunk(context, cipher.get(), position, header.original, payload, plain.data());
    }
    if (header.original) {
      out->Resize(size + payload.size());
      if (!payload.empty()) std::memcpy(out->data() + size, payload.data(), payload.size());
      size += payload.size();
    } else {
      out->Resize(size + ChunkRoom(context, payload));
      size += DecompressChunk(context, position, payload, out->span().subspan(size));
      out->Resize(size);
    }
    if (size > max_bytes)
      throw ChunkError(context, position,
                       fmt::format("more than {} bytes after decompression", max_bytes));
    position += kChunkHeaderBytes + header.length;
  }
}

}  // namespace headrace::reader::dwrf
