// Transport: carries frames from producers to a consumer in another process of the same user, and
// acknowledgements back. The consumer listens on a Unix socket (mode 0600); producers connect, and
// both say what they speak. What follows goes over that socket, or through a ring in shared memory
// (ring.h), with the socket kept to see the other side die.
//
//   producer  hello ->            names, batch, batch, ...,  end ->
//   consumer         <- hello            <- acknowledged 1, 2, ...
//
// Back-pressure: Send blocks while the socket's buffer or the ring is full. Errors: kFailure when
// the other side is gone, kInterrupted when `stopped` gave true in a wait (looked at ten times a
// second), kBadData for bytes that are no frame.
#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>

#include "reader/pipeline/delivery/address.h"
#include "reader/pipeline/delivery/frame.h"

namespace headrace::reader {

using DeliveryStopped = std::function<bool()>;

// One thread.
class Sender {
 public:
  virtual ~Sender() = default;
  // Takes the whole frame before it returns; waits for room go to operator account `waiter` as
  // w_out.
  virtual void Send(const Frame& frame, uint32_t waiter) = 0;
  // Batches that the consumer is done with. Never blocks.
  virtual uint64_t Acknowledged() = 0;
  // Waits until Acknowledged() >= batches.
  virtual void AwaitAcknowledged(uint64_t batches) = 0;
};

struct ReceivedFrame {
  FrameHeader header;
  std::span<const uint8_t> body;     // until the next Receive
  std::shared_ptr<const void> keep;  // where the body may be kept: by this, as long as wanted
};

// Receive: one thread; Acknowledge: any.
class Receiver {
 public:
  virtual ~Receiver() = default;
  // Waits for the next frame; the waits go to operator account `waiter` as w_in. Throws Error
  // kFailure when the producer is gone.
  virtual ReceivedFrame Receive(uint32_t waiter) = 0;
  // Says that `batches` in all were consumed. A producer that is gone is no error.
  virtual void Acknowledge(uint64_t batches) = 0;
  virtual int64_t producer_pid() const = 0;
};

struct SenderOptions {
  uint64_t ring_bytes = uint64_t{16} << 20;  // of shared memory; more when a frame needs it
  DeliveryStopped stopped = {};              // may be empty
};

// Throws Error kFailure when nobody listens there, the listener speaks something else, or wants no
// more producers.
std::unique_ptr<Sender> ConnectSender(const DeliveryAddress& address, SenderOptions options);

class Listener {
 public:
  // Throws Error kUsage when another consumer listens there.
  explicit Listener(DeliveryAddress address);
  ~Listener();  // the socket's file goes
  Listener(const Listener&) = delete;
  Listener& operator=(const Listener&) = delete;

  const DeliveryAddress& address() const { return address_; }
  // Waits for the next producer that speaks our version; null when `stopped` gave true. Others are
  // told why and left, with `enough` all of them; `refused`, if given, is called with a line about
  // each.
  std::unique_ptr<Receiver> Accept(const DeliveryStopped& stopped, bool enough = false,
                                   const std::function<void(const std::string&)>& refused = {});

 private:
  DeliveryAddress address_;
  int fd_ = -1;
  uint64_t device_ = 0, inode_ = 0;  // of the socket's file
};

}  // namespace headrace::reader
