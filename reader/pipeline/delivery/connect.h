// Connecting: a producer connects to the consumer that listens at an address, and both exchange
// greetings.
#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "reader/pipeline/delivery/address.h"
#include "reader/pipeline/delivery/transport.h"
#include "reader/pipeline/delivery/unix_socket.h"

namespace headrace::reader {

struct SenderOptions {
  uint64_t ring_bytes = uint64_t{16} << 20;  // of shared memory; more when a frame needs it
  DeliveryStopped stopped = {};              // may be empty
};

// Throws Error kFailure when nobody listens there, the listener speaks something else, or wants no
// more producers.
std::unique_ptr<Sender> ConnectSender(const DeliveryAddress& address, SenderOptions options);

class Listener {
 public:
  // Throws Error kUsage when another consumer listens there; otherwise as BoundSocket.
  explicit Listener(DeliveryAddress address);

  const DeliveryAddress& address() const { return address_; }
  // Waits for the next producer that speaks our version; null when `stopped` returned true. Other
  // producers are told the reason and disconnected; with `enough` this happens to all. `refused`,
  // if given, is called with a line about each.
  std::unique_ptr<Receiver> Accept(const DeliveryStopped& stopped, bool enough = false,
                                   const std::function<void(const std::string&)>& refused = {});

 private:
  DeliveryAddress address_;
  BoundSocket socket_;
};

}  // namespace headrace::reader
