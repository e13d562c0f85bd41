// Compressed frames: a batch's frame whose body is smaller on its way over a network. The body of
// one (kFramePacked) is, before it is padded to a multiple of 64:
//
//   u64 bytes of the plain body | block | block | ...
//   block: u32 codec (WireCodec) | u32 bytes, plain | u32 bytes, stored | the stored bytes
//
// Blocks are compressed each for itself, and those that would not shrink are stored as they are.
#pragma once
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "reader/batch/array.h"
#include "reader/pipeline/delivery/frame.h"
#include "reader/pipeline/delivery/wire_codec.h"

namespace headrace::reader {

constexpr uint64_t kPackedBlockBytes = uint64_t{256} << 10;  // plain, at most

// One connection, one thread.
class FramePacker {
 public:
  FramePacker();
  ~FramePacker();
  FramePacker(const FramePacker&) = delete;
  FramePacker& operator=(const FramePacker&) = delete;

  // The same batch compressed by `codec`, which is not kRaw. Its body lies here until the next
  // call. Throws Error kResources without memory for the codec.
  Frame Pack(const Frame& frame, WireCodec codec);
  void Release();  // the memory of the last one

 private:
  struct Contexts;
  void AddBlock(std::span<const uint8_t> plain, WireCodec codec);
  size_t Compress(std::span<const uint8_t> plain, WireCodec codec, std::span<uint8_t> to);

  std::unique_ptr<Contexts> contexts_;
  Array<uint8_t> packed_, gathered_;
  uint64_t have_ = 0;  // of packed_
};

// The plain body. Memory is taken as blocks come out, never for what is claimed. Throws Error
// kBadData when it is damaged, or longer than kMaxFrameBytes.
std::shared_ptr<Array<uint8_t>> UnpackBody(std::span<const uint8_t> packed);

}  // namespace headrace::reader
