// Fuzzes the blocks in which a batch's body comes through a network: any header, any stored bytes.
//
// fuzz run: share=1 length=4096
// fuzz sources: reader/pipeline/delivery/wire_block.cc reader/pipeline/delivery/narrow.cc
// fuzz sources: reader/pipeline/delivery/wire_codec.cc reader/pipeline/delivery/frame_encoder.cc
// fuzz sources: reader/pipeline/delivery/frame_hash.cc
// fuzz sources: reader/pipeline/delivery/frame_hash_avx2.cc
// fuzz sources: reader/pipeline/delivery/stream_copy.cc
#include <algorithm>
#include <cstdint>
#include <cstring>
#include <span>
#include <vector>

#include "base/check.h"
#include "base/error.h"
#include "reader/pipeline/delivery/wire_block.h"

using namespace headrace;
using namespace headrace::reader;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  std::span<const uint8_t> left(data, size);
  BlockUnpacker unpacker;
  std::vector<uint8_t> plain;
  try {
    while (left.size() >= sizeof(WireBlock)) {
      WireBlock block;
      std::memcpy(&block, left.data(), sizeof block);
      left = left.subspan(sizeof block);
      BlockUnpacker::Check(block, 1 << 20);
      if (block.stored > left.size()) return 0;
      plain.resize(block.plain);
      if (!BlockUnpacker::IsPlain(block)) {
        std::copy_n(left.begin(), block.stored, unpacker.Room(block).begin());
        unpacker.Unpack(block, plain);
      }
      left = left.subspan(block.stored);
      // What came out goes in and comes out again.
      BlockPacker packer;
      for (const WireCodec codec : {WireCodec::kNarrow, WireCodec::kLz4, WireCodec::kZstd}) {
        std::span<const uint8_t> stored;
        const WireBlock again = packer.Pack(plain, codec, &stored);
        BlockUnpacker::Check(again, plain.size());
        if (BlockUnpacker::IsPlain(again)) continue;
        std::vector<uint8_t> back(plain.size());
        std::copy(stored.begin(), stored.end(), unpacker.Room(again).begin());
        unpacker.Unpack(again, back);
        HR_CHECK(back == plain, "another block");
      }
    }
  } catch (const Error& error) {
    HR_CHECK(error.code() == ExitCode::kBadData, error.what());
  }
  return 0;
}
