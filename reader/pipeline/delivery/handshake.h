// Handshake: two processes that meet over TCP make sure that both have the job's token before
// anything else is said. The token is not sent:
//
//   (TLS 1.3, if the address says so)
//   caller    Hello{nonce} ->                     Proof{HMAC(token, "caller", ...)} ->
//   listener              <- Hello{nonce}                  <- Proof{HMAC(token, "listener", ...)}
//
// Each proof covers both nonces and the TLS session, so that it is good for this connection alone:
// who passes bytes on between two sides has two sessions. A listener takes 128 bytes of a stranger,
// in 64 KiB of TLS at most.
// Without TLS the proofs say who is there at the beginning; what follows could be read and changed
// on its way.
#pragma once
#include <poll.h>

#include <array>
#include <cstdint>
#include <memory>
#include <string>

#include "reader/pipeline/delivery/channel.h"
#include "reader/pipeline/delivery/credentials.h"

namespace headrace::reader {

enum class Purpose : uint32_t { kControl = 1, kDelivery = 2 };

// One thread. Nothing waits.
class Handshake {
 public:
  struct Terms {
    Side side = Side::kCaller;
    Purpose purpose = Purpose::kControl;
    bool is_encrypted = false;
    std::shared_ptr<const Credentials> credentials;
    std::string host = {};  // of a caller: whom it calls
  };
  // Takes the descriptor of a connected socket. `peer` names the other side in errors.
  Handshake(int fd, Terms terms, std::string peer);
  ~Handshake();
  Handshake(const Handshake&) = delete;
  Handshake& operator=(const Handshake&) = delete;

  // True once both sides have proved it; false: call again when Polled() says so. Throws Error
  // kPrivilege when the other side has another token, or another host's certificate; kFailure when
  // it speaks something else, and ClosedEarly when it went: it may have ended just now.
  bool Step();
  pollfd Polled() const;
  // The connection, once Step has returned true.
  Channel Take();
  const std::string& peer() const { return peer_; }

 private:
  enum class Stage : uint8_t { kTls, kHello, kProof, kLastWord, kDone };
  static constexpr size_t kPartBytes = 64;
  using Part = std::array<uint8_t, kPartBytes>;

  void Say(const Part& part);
  bool Flush();
  bool Fill();  // a whole part is in in_
  void BeginHello();
  void TakeHello();
  void TakeProof();
  Digest Sign(Side by) const;
  Part ProofOf(uint32_t status) const;
  [[noreturn]] void SpeaksSomethingElse() const;
  void SayTls() const;
  void SayPlain();

  const Terms terms_;
  const std::string peer_;
  int fd_;
  std::unique_ptr<TlsSession> tls_;  // until it has agreed
  std::unique_ptr<Channel> channel_;
  Stage stage_ = Stage::kTls;
  Digest binding_ = {};
  Part ours_ = {}, theirs_ = {}, in_ = {};
  size_t have_ = 0;  // of in_
  std::string out_;
  bool was_wrong_ = false;
};

}  // namespace headrace::reader
