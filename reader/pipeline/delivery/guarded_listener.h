// GuardedListener: listens for TCP connections, and lets in those that prove that they have the
// job's token (handshake.h). Strangers wait for nobody: their handshakes go on side by side, each
// for a few seconds, and the oldest goes when there are too many.
#pragma once
#include <poll.h>

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "reader/pipeline/delivery/address.h"
#include "reader/pipeline/delivery/handshake.h"

namespace headrace::reader {

// The address under which others reach what listens at `at`: for one that listens at all of the
// machine's addresses the first of them that is not loopback.
HostPort ReachableAt(const HostPort& at);

// Connects to a GuardedListener and shakes hands, in 10 s at most. Nothing when nobody listens
// there, when it went before it had proved anything, or when `stopped` says so; `why` says which.
// Throws Error kPrivilege and kFailure as Handshake.
std::optional<Channel> CallGuarded(const DeliveryAddress& to, Purpose purpose,
                                   std::shared_ptr<const Credentials> credentials,
                                   const std::function<bool()>& stopped, std::string* why);

// One thread. Nothing waits.
class GuardedListener {
 public:
  // `at`: kTcp or kTls; port 0: a free one. `refused`, if given, is called with a line about each
  // that is not let in, a few a second. Throws Error as TcpListener.
  GuardedListener(const DeliveryAddress& at, Purpose purpose,
                  std::shared_ptr<const Credentials> credentials,
                  std::function<void(const std::string&)> refused = {});

  // Where others reach it.
  const DeliveryAddress& address() const { return address_; }
  // What to poll before Turn is due.
  void AddPolled(std::vector<pollfd>* polled) const;

  struct Guest {
    Channel channel;
    std::string name;  // "10.0.0.7:41222"
  };
  std::vector<Guest> Turn();

 private:
  struct Stranger {
    std::unique_ptr<Handshake> handshake;
    int64_t until_ns = 0;
  };
  void Accept();
  void Refuse(const std::string& text);

  TcpListener listener_;
  const Handshake::Terms terms_;
  const std::function<void(const std::string&)> refused_;
  DeliveryAddress address_;
  std::deque<Stranger> strangers_;
  int64_t accept_ns_ = 0;  // not before
  int64_t second_ = 0;     // of the lines said last
  int lines_ = 0;          // in it
};

}  // namespace headrace::reader
