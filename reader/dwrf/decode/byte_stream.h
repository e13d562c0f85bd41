// ByteStream: one stored stream as a sequence of plain bytes, read piece by piece: chunk framing
// and compression are undone one chunk at a time, so memory is bounded by a chunk and a read window
// whatever the stream's length.
//
//   stored   [h|chunk 0][h|chunk 1]...   Seek(stored offset of a header, bytes to skip in its
//   chunk) plain    bytes 0 1 2 ...             ReadByte, Read, Skip
//
// A value: a copy continues independently from the same place (buffers are shared until one of the
// two moves on). Not thread-safe. All functions throw Error kBadData, with the byte offset, for
// damaged chunks and for reading past the end.
#pragma once
#include <cstdint>
#include <memory>
#include <string>

#include "base/buffer.h"
#include "reader/dwrf/chunk.h"
#include "reader/source/source.h"

namespace headrace::reader::dwrf {

struct StreamOrigin {
  std::shared_ptr<const Source> source;
  ChunkContext context;
  uint64_t length = 0;           // stored bytes
  uint64_t* unpacked = nullptr;  // if given: plain bytes are counted there as they are made
};

class ByteStream {
 public:
  ByteStream() = default;  // without any byte
  explicit ByteStream(std::shared_ptr<const StreamOrigin> origin) : origin_(std::move(origin)) {}

  bool AtEnd() { return begin_ == end_ && !Load(); }
  uint8_t ReadByte() {
    if (begin_ == end_ && !Load()) ThrowEnded();
    return *begin_++;
  }
  // A varint of at most 10 bytes; bits past the 64th are dropped.
  uint64_t ReadVarint() {
    uint64_t value = 0;
    for (int shift = 0; shift < 70; shift += 7) {
      const uint8_t byte = ReadByte();
      if (shift < 64) value |= uint64_t{byte & 0x7Fu} << shift;
      if (byte < 0x80) return value;
    }
    Throw("a varint of more than 10 bytes");
  }
  void Read(uint8_t* out, uint64_t count);
  // Appends `count` bytes; memory grows with the bytes that are really there.
  void AppendTo(std::string* out, uint64_t count);
  // Chunks that say their size are skipped without decompressing them.
  void Skip(uint64_t count);
  // Takes effect with the next read, since positions at the end of a stream are legal.
  void Seek(uint64_t stored_offset, uint64_t offset_in_chunk);

  bool is_framed() const { return origin_ && origin_->context.framed(); }
  // The most bytes that can still come.
  uint64_t MaxBytesLeft() const;
  [[noreturn]] void Throw(const std::string& what) const;

 private:
  bool Load();
  const uint8_t* Window(uint64_t at, uint64_t count);
  std::span<const uint8_t> Decrypted(std::span<const uint8_t> payload, bool original);
  [[noreturn]] void ThrowEnded() const;

  std::shared_ptr<const StreamOrigin> origin_;
  std::shared_ptr<Buffer> window_, chunk_, plain_;  // plain_: a chunk decrypted
  std::shared_ptr<Buffer> owner_;                   // what begin_ points into
  std::shared_ptr<ChunkCipher> cipher_;             // of an encrypted stream, once needed
  uint64_t window_start_ = 0;
  uint64_t next_ = 0;   // stored offset of the next chunk
  uint64_t start_ = 0;  // stored offset of the current chunk, for messages
  uint64_t pending_ = 0;
  const uint8_t* begin_ = nullptr;
  const uint8_t* end_ = nullptr;
};

}  // namespace headrace::reader::dwrf
