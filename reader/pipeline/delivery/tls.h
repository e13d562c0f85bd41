// TLS 1.3 for the connections of a job. TlsContext: what all connections of a process share;
// TlsSession: one of them.
//
// Without a certificate file each process makes itself a certificate, which proves nothing. The
// token does: its proofs are bound to the TLS session (handshake.h), so that nobody between the two
// sides can pass them on. With a certificate authority both sides must show a certificate of it as
// well, and that of a listener must name (subjectAltName) the host that the caller meant. A caller
// has no name by which it could be told: any certificate of the authority does.
#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "base/error.h"
#include "reader/pipeline/delivery/token.h"

namespace headrace::reader {

struct CertificateFiles {
  std::string certificate, key;  // PEM; empty: a certificate is made
  std::string authority;         // PEM; empty: the other side's certificate is not looked at
};

enum class Side : uint8_t { kCaller, kListener };

// The other side went before both had agreed: it may have ended, and come again.
class ClosedEarly : public Error {
 public:
  using Error::Error;
};

class TlsSession;

// Immutable, and shared by threads.
class TlsContext {
 public:
  // Throws Error kPrivilege for files that cannot be read or do not belong together, and for a key
  // with a passphrase: nobody is asked for it.
  explicit TlsContext(const CertificateFiles& files);
  ~TlsContext();
  TlsContext(const TlsContext&) = delete;
  TlsContext& operator=(const TlsContext&) = delete;

  // Over a connected socket, which the caller keeps open for as long as the session lives. `host`:
  // of a caller, whom it calls, by name or number; with an authority it is not empty.
  std::unique_ptr<TlsSession> Begin(int fd, Side side, const std::string& host = "") const;
  // What the certificate that was given would have to say (subjectAltName: "IP:10.0.0.7") for
  // callers with the same authority who call this host; empty when they take it as it is.
  std::string MissingName(const std::string& host) const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// Thread-safe. Nothing waits.
class TlsSession {
 public:
  // `ssl`: an OpenSSL SSL for the socket, taken.
  TlsSession(void* ssl, int fd);
  ~TlsSession();
  TlsSession(const TlsSession&) = delete;
  TlsSession& operator=(const TlsSession&) = delete;

  // True once both sides have agreed; false: call again when the socket can be read, or written if
  // wants_room(). Throws Error kFailure, with the reason, when they do not: ClosedEarly when there
  // is none; kPrivilege when the certificate is another host's. Until Trust is called the other
  // side may say 64 KiB in all, and is told as much; one that says more is gone.
  bool Agree();
  void Trust();
  bool wants_room() const { return wants_room_; }
  // The bytes moved; 0: the other side is gone; -1: not now. What Write could not take now must be
  // given to it again as it was, perhaps with more behind it.
  ptrdiff_t Read(std::span<uint8_t> bytes);
  ptrdiff_t Write(std::span<const uint8_t> bytes);
  // It is gone because of what it said: no TLS, an alert, too much.
  bool is_broken() const;
  // The same on both sides of this session, and of no other.
  Digest Binding();

 private:
  struct State;
  void CheckHost() const;

  std::unique_ptr<State> state_;
  bool wants_room_ = false;
};

}  // namespace headrace::reader
