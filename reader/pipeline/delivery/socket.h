// Socket: a connected stream socket, with waits that a stop request ends; and the greeting that
// both sides of a delivery exchange on it.
#pragma once
#include <sys/uio.h>

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "reader/pipeline/delivery/address.h"
#include "reader/pipeline/delivery/channel.h"

namespace headrace::reader {

class Socket {
 public:
  // `peer` names the other side in errors: "the consumer at unix:/run/a.sock".
  Socket(Channel channel, std::string peer, std::function<bool()> stopped);
  Socket(const Socket&) = delete;
  Socket& operator=(const Socket&) = delete;

  int fd() const { return channel_.fd(); }
  const std::string& peer() const { return peer_; }
  void set_peer(std::string peer) { peer_ = std::move(peer); }

  // Of TCP: a wait within many bytes ends once many of them came, and not with each packet, which
  // would wake this process and cost the sender that wakes it.
  void SetGathers() { gathers_ = true; }

  // Writes all of it. `waits` is called around every wait for room: true before, false after.
  // Throws Error kFailure when the peer is gone, kInterrupted when stopped.
  void Write(std::vector<iovec> parts, const std::function<void(bool)>& waits = {});
  void Write(std::span<const uint8_t> bytes);
  // Reads exactly bytes.size() bytes. False when the peer closed before the first one. Throws Error
  // kFailure when it closed within them, or after `timeout_ns` (0 = none) without all of them.
  // `waits` as for Write.
  bool Read(std::span<uint8_t> bytes, int64_t timeout_ns = 0,
            const std::function<void(bool)>& waits = {});
  // Reads what is there now, at most bytes.size(); 0 when there is nothing, or the peer closed.
  size_t ReadSome(std::span<uint8_t> bytes);
  // Writes as much as there is room for, without waiting; 0 when there is none, or the peer is
  // gone.
  size_t WriteSome(std::span<const uint8_t> bytes);
  // Of Unix sockets. One message of exactly bytes.size() bytes with up to fds.size() descriptors;
  // those not sent are -1.
  void WriteWithDescriptors(std::span<const uint8_t> bytes, std::span<const int> fds);
  bool ReadWithDescriptors(std::span<uint8_t> bytes, std::span<int> fds);

  bool PeerClosed() const;  // never blocks
  // Throws Error kInterrupted when stopped.
  void CheckStopped() const;
  [[noreturn]] void Gone() const;

 private:
  void WriteEncrypted(std::span<const uint8_t> bytes, const std::function<void(bool)>& waits);
  void WriteEncryptedParts(const std::vector<iovec>& parts, const std::function<void(bool)>& waits);
  // A call that takes or gives bytes: it waits inside for a moment, or with `now` does not.
  ptrdiff_t Receive(std::span<uint8_t> bytes, bool now);
  // Until it can be read (POLLIN) or written (POLLOUT), or a look at the stop request is due.
  void AwaitChannel(short event) const;
  // The next call that waits for bytes does so for `least` of them.
  void AwaitLeast(size_t least);

  Channel channel_;
  std::string peer_;
  std::function<bool()> stopped_;
  bool gathers_ = false;
  size_t least_ = 1;  // as AwaitLeast said
};

// 64 bytes, sent by the producer, answered by the consumer.
struct Greeting {
  char magic[8] = {'h', 'r', 'd', 'e', 'l', 'i', 'v', 'r'};
  uint32_t version = 4;  // of the whole protocol, on the socket and in the ring
  uint32_t kind = 0;     // DeliveryKind
  int64_t pid = 0;
  uint32_t refusal = 0;  // of the answer: 0 = welcome
  uint32_t codecs = 0;   // of the answer: a WireBit for each that it can unpack
  uint32_t unused[8] = {};
};
static_assert(sizeof(Greeting) == 64);
enum Refusal : uint32_t {
  kWelcome = 0,
  kOtherVersion = 1,
  kOtherKind = 2,
  kEnough = 3,  // all whom the consumer waited for are there
  kFull = 4     // as many as it takes at a time
};

}  // namespace headrace::reader
