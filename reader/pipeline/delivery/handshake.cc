#include "reader/pipeline/delivery/handshake.h"

#include <fmt/format.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/error.h"

namespace headrace::reader {
namespace {

struct Hello {
  char magic[8] = {'h', 'r', 'h', 'e', 'l', 'l', 'o', '1'};
  uint32_t version = 1;
  uint32_t purpose = 0;
  uint8_t nonce[32] = {};
  uint8_t unused[16] = {};
};
static_assert(sizeof(Hello) == 64);

enum ProofStatus : uint32_t { kProved = 0, kOtherToken = 1 };
struct Proof {
  uint32_t status = kProved;
  uint32_t unused = 0;
  uint8_t digest[32] = {};
  uint8_t also_unused[24] = {};
};
static_assert(sizeof(Proof) == 64);

constexpr const char* kSameVersion = "use the same headrace on both sides";

}  // namespace

Handshake::Handshake(int fd, Terms terms, std::string peer)
    : terms_(std::move(terms)), peer_(std::move(peer)), fd_(fd) {
  if (terms_.is_encrypted) {
    tls_ = terms_.credentials->tls.Begin(fd, terms_.side, terms_.host);
  } else {
    channel_ = std::make_unique<Channel>(fd);
    BeginHello();
  }
}

Handshake::~Handshake() {
  if (channel_) return;
  tls_.reset();
  close(fd_);
}

void Handshake::BeginHello() {
  Hello hello;
  hello.purpose = static_cast<uint32_t>(terms_.purpose);
  FillRandom(hello.nonce);
  std::memcpy(ours_.data(), &hello, sizeof hello);
  stage_ = Stage::kHello;
  if (terms_.side == Side::kCaller) Say(ours_);
}

pollfd Handshake::Polled() const {
  const bool wants_room = tls_ ? tls_->wants_room() : !out_.empty();
  return {fd_, static_cast<short>(wants_room ? POLLOUT : POLLIN), 0};
}

void Handshake::Say(const Part& part) {
  out_.append(reinterpret_cast<const char*>(part.data()), part.size());
}

bool Handshake::Flush() {
  while (!out_.empty()) {
    const ptrdiff_t sent =
        channel_->Write({reinterpret_cast<const uint8_t*>(out_.data()), out_.size()});
    if (sent < 0) return false;
    if (sent == 0) throw ClosedEarly(ExitCode::kFailure, "closed the connection", peer_);
    out_.erase(0, static_cast<size_t>(sent));
  }
  return true;
}

bool Handshake::Fill() {
  while (have_ < in_.size()) {
    const ptrdiff_t got = channel_->Read({in_.data() + have_, in_.size() - have_});
    if (got < 0) return false;
    if (got == 0 && have_ > 0 && stage_ == Stage::kHello) SpeaksSomethingElse();
    if (got == 0 && channel_->is_broken())
      throw Error(ExitCode::kFailure, "ends TLS, or says too much, instead of greeting", peer_,
                  terms_.side == Side::kListener ? "" : "look at the certificates");
    if (got == 0)
      throw ClosedEarly(ExitCode::kFailure, "closed the connection instead of greeting", peer_,
                        terms_.side == Side::kListener || terms_.is_encrypted
                            ? ""
                            : "write tls:HOST:PORT if it listens with TLS");
    have_ += static_cast<size_t>(got);
  }
  have_ = 0;
  return true;
}

// TLS records begin with their kind, 20 to 23, and 3.
void Handshake::SpeaksSomethingElse() const {
  const bool is_tls = have_ >= 2 && in_[0] >= 20 && in_[0] <= 23 && in_[1] == 3;
  const bool is_caller = terms_.side == Side::kCaller;
  throw Error(ExitCode::kFailure, is_tls ? "speaks TLS" : "is not a process of a job", peer_,
              is_tls && is_caller ? "write tls:HOST:PORT"
              : is_tls            ? "let it write tcp:HOST:PORT"
              : is_caller         ? "look at the address"
                                  : "");
}

// To a caller without TLS, which is to know that it will get no further: an alert.
void Handshake::SayTls() const {
  constexpr uint8_t kAlert[] = {21, 3, 3, 0, 2, 2, 70};  // fatal, protocol version
  if (terms_.side == Side::kListener) send(fd_, kAlert, sizeof kAlert, MSG_NOSIGNAL | MSG_DONTWAIT);
}

// To a caller with TLS: what is no TLS. What it said is read first, for a connection that is closed
// with unread bytes takes back what was sent.
void Handshake::SayPlain() {
  uint8_t rest[4096];
  if (terms_.side != Side::kListener || terms_.is_encrypted) return;
  channel_->Read(rest);
  Say(ours_);
  Flush();
}

bool Handshake::Step() {
  if (stage_ == Stage::kTls) {
    const char* const fix =
        terms_.side == Side::kCaller
            ? "write tcp:HOST:PORT if it listens without TLS, and look at the certificates"
            : "";
    try {
      if (!tls_->Agree()) return false;
    } catch (const ClosedEarly& error) {
      throw ClosedEarly(ExitCode::kFailure, error.fact(), peer_, fix);
    } catch (const Error& error) {
      SayTls();
      throw Error(error.code(), error.fact(), peer_, error.fix().empty() ? fix : error.fix());
    }
    binding_ = tls_->Binding();
    channel_ = std::make_unique<Channel>(fd_, std::move(tls_));
    BeginHello();
  }
  for (;;) {
    if (!Flush()) return false;
    if (stage_ == Stage::kLastWord) {
      stage_ = Stage::kDone;
      if (was_wrong_) throw Error(ExitCode::kPrivilege, "has another token than this job's", peer_);
    }
    if (stage_ == Stage::kDone) return true;
    if (!Fill()) return false;
    stage_ == Stage::kHello ? TakeHello() : TakeProof();
  }
}

void Handshake::TakeHello() {
  Hello hello;
  std::memcpy(&hello, in_.data(), sizeof hello);
  const Hello expected;
  if (std::memcmp(hello.magic, expected.magic, sizeof hello.magic) != 0) {
    have_ = in_.size();
    SayPlain();
    SpeaksSomethingElse();
  }
  theirs_ = in_;
  if (terms_.side == Side::kListener) {
    Say(ours_);
    Flush();  // also to one that is refused now: it can say why
  }
  if (hello.version != expected.version)
    throw Error(ExitCode::kFailure,
                fmt::format("greets with version {}, this headrace with {}", hello.version,
                            expected.version),
                peer_, kSameVersion);
  if (hello.purpose != static_cast<uint32_t>(terms_.purpose))
    throw Error(ExitCode::kFailure,
                terms_.purpose == Purpose::kControl ? "does not speak as a dispatcher or member"
                                                    : "does not take batches",
                peer_, "look at the address");
  if (terms_.side == Side::kCaller) Say(ProofOf(kProved));
  stage_ = Stage::kProof;
}

void Handshake::TakeProof() {
  Proof proof;
  std::memcpy(&proof, in_.data(), sizeof proof);
  const bool is_caller = terms_.side == Side::kCaller;
  Digest digest;
  std::memcpy(digest.data(), proof.digest, sizeof proof.digest);
  const bool is_right = AreSame(digest, Sign(is_caller ? Side::kListener : Side::kCaller));
  if (is_caller) {
    if (proof.status != kProved)
      throw Error(ExitCode::kPrivilege, "refuses this process's token", peer_,
                  "give the one that it was started with");
    if (!is_right)
      throw Error(ExitCode::kPrivilege, "does not have this job's token", peer_,
                  "look at the address: what listens there is not of this job");
    stage_ = Stage::kDone;
    return;
  }
  was_wrong_ = !is_right;
  Say(ProofOf(is_right ? kProved : kOtherToken));
  stage_ = Stage::kLastWord;
}

// The hellos are signed as they came: the version and purpose that both sides heard are the same.
Digest Handshake::Sign(Side by) const {
  const bool is_caller = terms_.side == Side::kCaller;
  const std::string_view label = by == Side::kCaller ? "headrace caller 1" : "headrace listener 1";
  const std::span<const uint8_t> parts[] = {
      {reinterpret_cast<const uint8_t*>(label.data()), label.size()},
      is_caller ? ours_ : theirs_,
      is_caller ? theirs_ : ours_,
      binding_};
  return terms_.credentials->token.Sign(parts);
}

Handshake::Part Handshake::ProofOf(uint32_t status) const {
  Proof proof;
  proof.status = status;
  if (status == kProved) {
    const Digest digest = Sign(terms_.side);
    std::memcpy(proof.digest, digest.data(), digest.size());
  }
  Part part;
  std::memcpy(part.data(), &proof, sizeof proof);
  return part;
}

Channel Handshake::Take() {
  channel_->Trust();
  return std::move(*channel_);
}

}  // namespace headrace::reader
