// Wire: the batches of one connection over a network, compressed where that gets more through
// (wire_choice.h) or where the pipeline file says so. What every sender of batches shares.
#pragma once
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "reader/pipeline/delivery/packed_frame.h"
#include "reader/pipeline/delivery/transport.h"
#include "reader/pipeline/delivery/wire_choice.h"

namespace headrace::reader {

struct WireOptions {
  WireSetting setting = {};
  uint32_t stage = UINT32_MAX;  // whose operator `compress` it is
  // A line about another codec and why.
  std::function<void(const std::string&)> note = {};
};

// One thread.
class Wire {
 public:
  // `sender` outlives it.
  Wire(const Sender* sender, WireOptions options);

  // Before all that is done to get the next batch away.
  void Begin();
  // Compresses the batch among `frames`, as FrameEncoder gave them; they are valid until the next
  // call.
  void Pack(std::vector<Frame>* frames);
  // The last ones are sent.
  void Sent();

 private:
  bool packs() const { return codec_ != WireCodec::kRaw; }

  const Sender* const sender_;
  const WireOptions options_;
  WireCodec codec_ = WireCodec::kRaw;
  bool chooses_ = false;
  WireChoice choice_;
  FramePacker packer_;
  WireCounts counts_;
  int64_t begin_ns_ = 0;
  uint32_t compress_ = UINT32_MAX;  // account
};

}  // namespace headrace::reader
