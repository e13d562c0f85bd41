// Transport: carries frames from producers to a consumer in another process of the same user, and
// acknowledgements back. The consumer listens on a Unix socket (mode 0600); producers connect, and
// both sides exchange their version. Frames then go over that socket, or through a ring in shared
// memory (ring.h); in that case the socket stays open to notice when the other side dies.
//
//   producer  hello ->            names, batch, batch, ...,  end ->
//   consumer         <- hello            <- acknowledged 1, 2, ...
//
// Back-pressure: Send blocks while the socket's buffer or the ring is full. Errors: kFailure when
// the other side is gone, kInterrupted when `stopped` gave true in a wait (looked at ten times a
// second), kBadData for bytes that are not a frame.
#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "reader/pipeline/delivery/address.h"
#include "reader/pipeline/delivery/frame.h"
#include "reader/pipeline/delivery/wire_codec.h"

namespace headrace::reader {

using DeliveryStopped = std::function<bool()>;

// One thread.
class Sender {
 public:
  virtual ~Sender() = default;
  // Takes the whole frame before it returns; waits for room go to operator account `waiter` as
  // w_out. The bytes that it took on its way.
  virtual uint64_t Send(const Frame& frame, uint32_t waiter) = 0;
  // Number of batches that the consumer is done with. Never blocks.
  virtual uint64_t Acknowledged() = 0;
  // Waits until Acknowledged() >= batches.
  virtual void AwaitAcknowledged(uint64_t batches) = 0;
  // Whether the consumer can unpack batches of this codec.
  virtual bool Takes(WireCodec codec) const { return codec == WireCodec::kRaw; }
  // Makes batches smaller from now on; to whom it Takes. The work goes to operator account
  // `packer`.
  virtual void SetCodec(WireCodec /*codec*/, uint32_t /*packer*/) {}
  // Time in which bytes were on their way or waited to be, and not for room at the receiver, as the
  // system counts it; none where it does not.
  virtual std::optional<int64_t> network_ns() const { return std::nullopt; }
};

struct ReceivedFrame {
  FrameHeader header;
  std::span<const uint8_t> body;     // until the next Receive
  std::shared_ptr<const void> keep;  // if not null: keeps the body valid for as long as it is held
  FrameMemory memory = FrameMemory::kOwn;
  uint64_t wire_bytes = 0;  // that it took on its way
};

// Receive: one thread; Acknowledge: any.
class Receiver {
 public:
  virtual ~Receiver() = default;
  // Waits for the next frame; the waits go to operator account `waiter` as w_in. Throws Error
  // kFailure when the producer is gone.
  virtual ReceivedFrame Receive(uint32_t waiter) = 0;
  // Reports that `batches` batches in all were consumed. It is no error if the producer is gone.
  virtual void Acknowledge(uint64_t batches) = 0;
  virtual int64_t producer_pid() const = 0;
  // The producer is gone; what it sent before may still be received. Never blocks.
  virtual bool has_hung_up() const = 0;
};

}  // namespace headrace::reader
