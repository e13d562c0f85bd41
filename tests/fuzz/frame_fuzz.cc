// Fuzzes the frames of a delivery: any bytes, read as the stream of a connection. The first byte
// says whether magic, version and checksum are put right first, so that what lies behind them is
// reached, and whether the bytes lie in shared memory, whose producer writes other ones there once
// they were decoded.
//
// fuzz run: share=2 length=16384 options=-len_control=0
// fuzz sources: reader/pipeline/delivery/frame_encoder.cc reader/pipeline/delivery/frame_decoder.cc
// fuzz sources: reader/pipeline/delivery/frame_hash.cc
// fuzz sources: reader/pipeline/delivery/frame_hash_avx2.cc
// fuzz sources: reader/pipeline/delivery/stream_copy.cc
#include <algorithm>
#include <cstdint>
#include <cstring>
#include <memory>
#include <span>

#include "base/check.h"
#include "base/error.h"
#include "reader/batch/tensorize.h"
#include "reader/pipeline/delivery/frame.h"

using namespace headrace;
using namespace headrace::reader;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const bool mends = data[0] % 4 != 0, is_shared = data[0] / 4 % 2 != 0;
  std::span<const uint8_t> left(data + 1, size - 1);
  FrameDecoder decoder;
  try {
    while (!decoder.ended()) {
      FrameHeader header;
      if (mends && left.size() >= sizeof header) {
        std::memcpy(&header, left.data(), sizeof header);
        header.magic = kFrameMagic;
        header.version = kFrameVersion;
        if (is_shared) header.flags |= kFrameUnhashed;
        if (!IsHashed(header)) header.checksum = 0;
        header = ParseFrameHeader({reinterpret_cast<const uint8_t*>(&header), sizeof header});
      } else {
        header = ParseFrameHeader(left);
      }
      left = left.subspan(sizeof header);
      if (header.body_bytes > left.size()) return 0;
      const auto body = left.first(header.body_bytes);
      left = left.subspan(header.body_bytes);
      if (mends) header.checksum = FrameChecksum(header, body);
      std::shared_ptr<Array<uint8_t>> shared;
      if (is_shared) {
        shared = std::make_shared<Array<uint8_t>>(body.size());
        std::copy(body.begin(), body.end(), shared->begin());
      }
      const auto batch = is_shared ? decoder.Decode(header, {shared->data(), shared->size()},
                                                    shared, FrameMemory::kShared)
                                   : decoder.Decode(header, body);
      if (!batch) continue;
      if (is_shared) std::fill(shared->begin(), shared->end(), 0xff);
      Validate(batch->sparse);
      Validate(batch->weighted_sparse);
      for (const auto& group : batch->groups) {
        Validate(group);
        HR_CHECK(group.inverse.size() == batch->rows, "inverse");
      }
      for (const bool weighted : {false, true}) {
        for (const JaggedKey& key : KeysInOrder(*batch, weighted))
          HR_CHECK(key.tensor != nullptr, "a place without a key");
      }
      HR_CHECK(batch->dense.size() == batch->rows * batch->dense_names.size(), "dense");
      HR_CHECK(batch->MemoryBytes() <= 4 * (size + 64), "more memory than bytes account for");
    }
  } catch (const Error& error) {
    HR_CHECK(error.code() == ExitCode::kBadData, error.what());
  }
  return 0;
}
