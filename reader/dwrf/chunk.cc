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

}  // namespace

void Unframe(std::span<const uint8_t> stored, const ChunkContext& context, Buffer* out,
             uint64_t max_bytes) {
  out->Resize(0);
  if (context.compression == CompressionKind::kNone) {
    if (stored.size() > max_bytes)
      throw ChunkError(
          context, 0,
          fmt::format("{} bytes where at most {} make sense", stored.size(), max_bytes));
    out->Resize(stored.size());
    if (!stored.empty()) std::memcpy(out->data(), stored.data(), stored.size());
    return;
  }
  uint64_t position = 0, size = 0;
  while (position < stored.size()) {
    const ChunkHeader header = CheckedHeader(stored, position, context);
    const std::span<const uint8_t> payload =
        stored.subspan(position + kChunkHeaderBytes, header.length);
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

ChunkReader::ChunkReader(std::span<const uint8_t> stored, ChunkContext context)
    : stored_(stored), context_(std::move(context)) {}

bool ChunkReader::Next(std::span<const uint8_t>* chunk) {
  while (position_ < stored_.size()) {
    if (context_.compression == CompressionKind::kNone) {
      *chunk = stored_.subspan(position_);
      position_ = stored_.size();
      return true;
    }
    const ChunkHeader header = CheckedHeader(stored_, position_, context_);
    const std::span<const uint8_t> payload =
        stored_.subspan(position_ + kChunkHeaderBytes, header.length);
    const uint64_t start = position_;
    position_ += kChunkHeaderBytes + header.length;
    if (header.original) {
      *chunk = payload;
    } else {
      chunk_.Resize(ChunkRoom(context_, payload));
      *chunk = {chunk_.data(), DecompressChunk(context_, start, payload, chunk_.span())};
    }
    if (!chunk->empty()) return true;
  }
  return false;
}

void ChunkReader::Seek(uint64_t stored_offset) {
  if (stored_offset > stored_.size()) {
    throw ChunkError(
        context_, stored_offset,
        fmt::format("position {} is past the stream's {} bytes", stored_offset, stored_.size()));
  }
  position_ = stored_offset;
}

}  // namespace headrace::reader::dwrf
