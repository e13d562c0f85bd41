// Wire: how the batches of one connection are made smaller on their way: as the pipeline file says,
// or as gets most through (wire_choice.h). What every sender of batches shares.
#pragma once
#include <cstdint>
#include <functional>
#include <string>

#include "reader/pipeline/delivery/transport.h"
#include "reader/pipeline/delivery/wire_choice.h"

namespace headrace::reader {

struct WireOptions {
  WireSetting setting = {};
  uint32_t stage = UINT32_MAX;  // whose operator `send.compress` it is
  // A line about another codec and why.
  std::function<void(const std::string&)> note = {};
};

// One thread.
class Wire {
 public:
  // `sender` outlives it.
  Wire(Sender* sender, WireOptions options);

  // Before all that is done to get the next batch away.
  void Begin();
  // It was sent: so many bytes, as it was.
  void Sent(uint64_t bytes);

 private:
  void Use(WireCodec codec);

  Sender* const sender_;
  const WireOptions options_;
  bool chooses_ = false;
  WireChoice choice_;
  WireCounts counts_;
  int64_t begin_ns_ = 0;
};

}  // namespace headrace::reader
