#include "reader/dwrf/decode/byte_stream.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "base/error.h"

namespace headrace::reader::dwrf {
namespace {

constexpr uint64_t kWindowBytes = 64 << 10;

// A buffer of `size` that nobody else looks into: the given one where that is so.
void MakeOwn(std::shared_ptr<Buffer>* buffer, uint64_t size) {
  if (!*buffer || buffer->use_count() > 1) *buffer = std::make_shared<Buffer>();
  (*buffer)->Resize(size);
}

}  // namespace

void ByteStream::Throw(const std::string& what) const {
  const std::string where = origin_ ? fmt::format("{} at byte {}", origin_->context.where,
                                                  origin_->context.file_offset + start_)
                                    : std::string("a stream the stripe does not have");
  throw Error(ExitCode::kBadData, what, where, "the file is damaged");
}

void ByteStream::ThrowEnded() const { Throw("the stream ends before its last value"); }

const uint8_t* ByteStream::Window(uint64_t at, uint64_t count) {
  if (!window_ || at < window_start_ || at + count > window_start_ + window_->size()) {
    const uint64_t size = std::max(count, std::min(kWindowBytes, origin_->length - at));
    MakeOwn(&window_, size);
    window_start_ = at;
    origin_->source->ReadAt(origin_->context.file_offset + at, window_->span());
  }
  return window_->data() + (at - window_start_);
}

// Decrypts the payload of the chunk at start_ into plain_.
std::span<const uint8_t> ByteStream::Decrypted(std::span<const uint8_t> payload, bool original) {
  const ChunkContext& context = origin_->context;
  if (!cipher_) cipher_ = std::make_shared<ChunkCipher>(context.key->cipher, context.key->key);
  MakeOwn(&plain_, payload.size());
  return DecryptChunk(context, cipher_.get(), start_, original, payload, plain_->data());
}

bool ByteStream::Load() {
  if (!origin_) return false;
  const ChunkContext& context = origin_->context;
  while (next_ < origin_->length) {
    start_ = next_;
    owner_.reset();
    const uint64_t left = origin_->length - next_;
    if (!context.framed()) {
      const uint64_t size = std::min(left, kWindowBytes);
      begin_ = Window(next_, size);
      end_ = begin_ + size;
      owner_ = window_;
      next_ += size;
    } else {
      if (left < kChunkHeaderBytes)
        Throw(fmt::format("{} bytes left for a 3-byte chunk header", left));
      const ChunkHeader header = ParseChunkHeader(Window(next_, kChunkHeaderBytes));
      if (header.length > left - kChunkHeaderBytes) {
        Throw(fmt::format("chunk length {} exceeds the {} bytes left", header.length,
                          left - kChunkHeaderBytes));
      }
      std::span<const uint8_t> in(Window(next_ + kChunkHeaderBytes, header.length), header.length);
      if (context.key != nullptr) {
        begin_ = end_ = nullptr;
        in = Decrypted(in, header.original);
      }
      next_ += kChunkHeaderBytes + header.length;
      if (header.original) {
        begin_ = in.data();
        end_ = begin_ + in.size();
        owner_ = context.key != nullptr ? plain_ : window_;
      } else {
        try {
          MakeOwn(&chunk_, MaxDecompressedSize(context.compression, in, context.block_size));
          begin_ = chunk_->data();
          end_ = begin_ + Decompress(context.compression, in, chunk_->span());
        } catch (const Error& error) {
          begin_ = end_ = nullptr;
          if (error.code() != ExitCode::kBadData) throw;
          Throw(error.fact());
        }
        owner_ = chunk_;
      }
    }
    const uint64_t size = static_cast<uint64_t>(end_ - begin_);
    if (origin_->unpacked != nullptr) *origin_->unpacked += size;
    if (pending_ > size) {
      begin_ = end_;
      Throw(fmt::format("position {} in a chunk of {} bytes", pending_, size));
    }
    begin_ += pending_;
    pending_ = 0;
    if (begin_ != end_) return true;
  }
  if (pending_ > 0) Throw("a position past the end");
  return false;
}

void ByteStream::Read(uint8_t* out, uint64_t count) {
  while (count > 0) {
    if (begin_ == end_ && !Load()) ThrowEnded();
    const uint64_t n = std::min<uint64_t>(count, static_cast<uint64_t>(end_ - begin_));
    std::memcpy(out, begin_, n);
    begin_ += n;
    out += n;
    count -= n;
  }
}

void ByteStream::AppendTo(std::string* out, uint64_t count) {
  while (count > 0) {
    if (begin_ == end_ && !Load()) ThrowEnded();
    const uint64_t n = std::min<uint64_t>(count, static_cast<uint64_t>(end_ - begin_));
    out->append(reinterpret_cast<const char*>(begin_), n);
    begin_ += n;
    count -= n;
  }
}

void ByteStream::Skip(uint64_t count) {
  while (count > 0) {
    if (begin_ == end_ && is_framed() && pending_ == 0 &&
        next_ + kChunkHeaderBytes <= origin_->length) {
      // A chunk that lies inside what is skipped need not be unpacked when its size is known.
      const ChunkHeader header = ParseChunkHeader(Window(next_, kChunkHeaderBytes));
      if (header.length <= origin_->length - next_ - kChunkHeaderBytes) {
        uint64_t size = header.length;
        if (const auto& key = origin_->context.key; key != nullptr) {
          const uint64_t tag = TagBytes(key->cipher);
          size = header.original && size >= tag ? size - tag : UINT64_MAX;
        } else if (!header.original) {
          const std::span<const uint8_t> in(Window(next_ + kChunkHeaderBytes, header.length),
                                            header.length);
          const auto stated = StatedSize(origin_->context.compression, in);
          size = stated && *stated <= origin_->context.block_size ? *stated : UINT64_MAX;
        }
        if (size <= count) {
          next_ += kChunkHeaderBytes + header.length;
          count -= size;
          continue;
        }
      }
    }
    if (begin_ == end_ && !Load()) ThrowEnded();
    const uint64_t n = std::min<uint64_t>(count, static_cast<uint64_t>(end_ - begin_));
    begin_ += n;
    count -= n;
  }
}

void ByteStream::Seek(uint64_t stored_offset, uint64_t offset_in_chunk) {
  const uint64_t length = origin_ ? origin_->length : 0;
  if (stored_offset > length) {
    Throw(fmt::format("the row index points to byte {} of a stream of {}", stored_offset, length));
  }
  owner_.reset();
  begin_ = end_ = nullptr;
  next_ = stored_offset;
  pending_ = offset_in_chunk;
}

uint64_t ByteStream::MaxBytesLeft() const {
  if (!origin_) return 0;
  return static_cast<uint64_t>(end_ - begin_) + MaxExpansion(origin_->context.compression,
                                                             origin_->length - next_,
                                                             origin_->context.block_size);
}

}  // namespace headrace::reader::dwrf
