// Connecting: a producer connects to the consumer that listens at an address, and both exchange
// greetings.
#pragma once
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "base/error.h"
#include "reader/pipeline/delivery/address.h"
#include "reader/pipeline/delivery/guarded_listener.h"
#include "reader/pipeline/delivery/transport.h"
#include "reader/pipeline/delivery/unix_socket.h"

namespace headrace::reader {

struct SenderOptions {
  uint64_t ring_bytes = uint64_t{16} << 20;  // of shared memory; more when a frame needs it
  DeliveryStopped stopped = {};              // may be empty
  std::shared_ptr<const Credentials> credentials = {};  // for kTcp and kTls
};

// Somebody listens there, and does not take this producer: another time it may where it is full.
class NotTaken : public Error {
 public:
  NotTaken(Error refusal, bool is_full) : Error(std::move(refusal)), is_full_(is_full) {}
  bool is_full() const { return is_full_; }  // it has as many as it takes at a time

 private:
  bool is_full_;
};

// Throws Error kFailure when nobody listens there or the connection breaks, kPrivilege when it has
// another token, kResources when there is no memory for a ring; NotTaken of kFailure when the
// listener speaks something else, or wants no more producers, and of kResources when it is full.
std::unique_ptr<Sender> ConnectSender(const DeliveryAddress& address, SenderOptions options);

class Listener {
 public:
  // Throws Error kUsage when another consumer listens there; otherwise as BoundSocket or
  // GuardedListener. `credentials` for kTcp and kTls.
  explicit Listener(DeliveryAddress address, std::shared_ptr<const Credentials> credentials = {});

  // Where producers reach it.
  const DeliveryAddress& address() const { return address_; }
  // `most` producers at a time: `count` says how many there are, as each other one greets; then it
  // is refused.
  void Bound(size_t most, std::function<size_t()> count) {
    most_ = most;
    count_ = std::move(count);
  }
  // Waits for the next producer that speaks our version; null when `stopped` returned true. Other
  // producers are told the reason and disconnected; with `enough` this happens to all. `refused`,
  // if given, is called with a line about each.
  std::unique_ptr<Receiver> Accept(const DeliveryStopped& stopped, bool enough = false,
                                   const std::function<void(const std::string&)>& refused = {});

 private:
  struct Caller {
    std::optional<Channel> channel;
    std::string name;
  };
  Caller NextCaller();
  std::unique_ptr<Receiver> Greet(Caller caller, const DeliveryStopped& stopped, bool enough,
                                  const std::function<void(const std::string&)>& tell);

  DeliveryAddress address_;
  size_t most_ = SIZE_MAX;
  std::function<size_t()> count_ = {};
  std::optional<BoundSocket> socket_;         // of kUnix and kShm
  std::unique_ptr<GuardedListener> guarded_;  // of the others
  std::deque<Caller> waiting_;                // that guarded_ let in
  std::deque<std::string> refused_;           // lines about those that it did not
};

}  // namespace headrace::reader
