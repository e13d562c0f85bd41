// WireChoice: which codec a connection's batches should have, from what is seen while they are
// sent. Batches are narrowed, which costs next to nothing, as long as the network lets them pass.
// Where it holds them up, the next codec (lz4, then zstd) is tried for a moment and kept if more
// gets through; now and then the one before is tried again, for networks change. A receiver that is
// slow itself does not count: no codec makes it faster.
//
// No clock and no socket: the caller says what passed.
#pragma once
#include <cstdint>
#include <optional>
#include <string>

#include "reader/pipeline/delivery/wire_codec.h"

namespace headrace::reader {

// Sums since the connection was made.
struct WireCounts {
  uint64_t sent = 0, acknowledged = 0;  // batches
  uint64_t bytes = 0;                   // of batches, plain
  int64_t sending_ns = 0;               // that the sender worked or waited to get them away
  // That bytes were on their way or waited to be, and not for room at the receiver.
  int64_t network_ns = 0;
};

class WireChoice {
 public:
  // After a batch was sent with codec(). The line to say where another codec is kept.
  std::optional<std::string> Sent(int64_t now_ns, const WireCounts& counts);
  WireCodec codec() const { return codec_; }

 private:
  struct Rates {
    double sending = 0;  // bytes a second of sending
    double passing = 0;  // bytes a second
    double network = 0;  // share of the time
    double busy = 0;     // share of the time that the sender was sending
  };
  void Begin(int64_t now_ns, const WireCounts& counts);
  void Use(WireCodec codec, const WireCounts& counts);
  std::string Judge(int64_t now_ns, const WireCounts& counts, const Rates& rates);

  WireCodec codec_ = WireCodec::kNarrow;
  std::optional<WireCodec> kept_;  // while another one is tried: that before
  Rates before_;                   // with it
  int64_t begin_ns_ = 0;
  WireCounts begin_;  // of what is being measured
  uint32_t batches_ = 0;
  // Batches that were sent before this codec was: what is measured begins once they are through, as
  // they pace those behind them.
  uint64_t earlier_ = 0;
  bool is_settling_ = true;
  int64_t since_ns_ = 0;                        // that the last other codec was kept
  int64_t up_at_ns_ = 0, up_pause_ns_ = 0;      // when the next codec may be tried
  int64_t down_at_ns_ = 0, down_pause_ns_ = 0;  // and the one before
};

}  // namespace headrace::reader
