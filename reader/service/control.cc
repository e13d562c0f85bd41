#include "reader/service/control.h"

#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>

#include "base/clock.h"
#include "base/error.h"

namespace headrace::reader::service {
namespace {

constexpr size_t kReadBytes = 64 << 10;
constexpr int64_t kAcceptAgainNs = 100'000'000;  // after descriptors ran out
// A peer that does not read so much is disconnected: it comes again and is told anew.
constexpr uint64_t kMostUnsent = uint64_t{512} << 20;

}  // namespace

std::unique_ptr<ControlConnection> ControlConnection::Connect(const std::string& path) {
  const sockaddr_un name = SocketName(path);
  auto connection = std::make_unique<ControlConnection>(Channel(NewSocket(path, SOCK_NONBLOCK)));
  if (connect(connection->fd(), reinterpret_cast<const sockaddr*>(&name), sizeof name) == 0)
    return connection;
  if (errno == ENOENT || errno == ECONNREFUSED || errno == EAGAIN) return nullptr;
  throw ErrnoError(errno, "connect to", path);
}

void ControlConnection::Send(const Message& message) {
  out_ += Serialize(message);
  Flush();
}

void ControlConnection::Flush() {
  while (sent_ < out_.size()) {
    const ptrdiff_t sent = channel_.Write(
        {reinterpret_cast<const uint8_t*>(out_.data()) + sent_, out_.size() - sent_});
    if (sent <= 0) break;  // no room, or gone: reading tells
    sent_ += static_cast<size_t>(sent);
  }
  if (sent_ < out_.size()) return;
  out_.clear();
  sent_ = 0;
}

void ControlConnection::Fill() {
  std::array<uint8_t, kReadBytes> bytes;  // not filled: most reads are short
  for (;;) {
    const ptrdiff_t got = channel_.Read(bytes);
    if (got <= 0) {
      is_closed_ = got == 0;
      return;
    }
    in_.insert(in_.end(), bytes.begin(), bytes.begin() + got);
  }
}

std::vector<Message> ControlConnection::Parse() {
  std::vector<Message> messages;
  size_t at = 0;
  while (in_.size() - at >= kMessageHeaderBytes) {
    const std::span<const uint8_t> left(in_.data() + at, in_.size() - at);
    const uint64_t bytes = MessageBytes(left);
    if (bytes > left.size()) break;
    messages.push_back(ParseMessage(left.first(bytes)));
    at += bytes;
  }
  in_.erase(in_.begin(), in_.begin() + static_cast<ptrdiff_t>(at));
  has_spoken_ |= !messages.empty();
  return messages;
}

std::vector<Message> ControlConnection::Receive(int timeout_ms, int wake_fd) {
  Flush();
  Fill();  // also what TLS has read already, which no poll shows
  std::vector<Message> messages = Parse();
  if (!messages.empty() || is_closed_ || timeout_ms == 0) return messages;
  pollfd both[2] = {{fd(), static_cast<short>(POLLIN | (unsent_bytes() > 0 ? POLLOUT : 0)), 0},
                    {wake_fd, POLLIN, 0}};
  if (poll(both, 2, timeout_ms) <= 0 || both[0].revents == 0) return {};
  Flush();
  Fill();
  return Parse();
}

std::string TextOfLost(const ControlConnection& dispatcher) {
  return dispatcher.has_spoken()
             ? "the dispatcher is gone: waits for it, or for another one"
             : "the dispatcher is gone without a word: waits for it, or for another one";
}

ControlServer::ControlServer(const std::string& path)
    : socket_(path, Error(ExitCode::kUsage, "another dispatcher has this job", path,
                          "end it, or give another --job")) {}

void ControlServer::Accept() {
  const int fd = accept4(socket_.fd(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK);
  if (fd >= 0) {
    peers_.emplace(++last_peer_, std::make_unique<ControlConnection>(Channel(fd)));
  } else if (errno != EAGAIN && errno != EINTR) {
    accept_ns_ = MonotonicNs() + kAcceptAgainNs;  // whoever waits there would wake every poll
  }
}

ControlServer::Event ControlServer::Hear(uint64_t id) {
  ControlConnection& peer = *peers_.at(id);
  Event event;
  event.peer = id;
  try {
    event.messages = peer.Receive(0);
    event.is_gone = peer.is_closed() || peer.unsent_bytes() > kMostUnsent;
  } catch (const Error& error) {
    event.why = error.what();
    event.is_gone = true;
    // In a message of our version: one that knows another one says both.
    peer.Send(Refused{static_cast<uint32_t>(error.code()), error.fact(), error.fix()});
  }
  if (event.is_gone) peers_.erase(id);
  return event;
}

std::vector<ControlServer::Event> ControlServer::Wait(int timeout_ms) {
  std::vector<pollfd> polled = {{MonotonicNs() < accept_ns_ ? -1 : socket_.fd(), POLLIN, 0}};
  std::vector<uint64_t> ids = {0};
  for (const auto& [id, peer] : peers_) {
    polled.push_back(
        {peer->fd(), static_cast<short>(POLLIN | (peer->unsent_bytes() > 0 ? POLLOUT : 0)), 0});
    ids.push_back(id);
  }
  if (guarded_) guarded_->AddPolled(&polled);
  std::vector<Event> events;
  if (poll(polled.data(), polled.size(), timeout_ms) < 0) return events;
  for (size_t i = 1; i < ids.size(); ++i)
    if (polled[i].revents != 0) events.push_back(Hear(ids[i]));
  if (polled[0].revents != 0) Accept();
  if (!guarded_) return events;
  for (GuardedListener::Guest& guest : guarded_->Turn()) {
    // It may have spoken already: what TLS has read no poll shows.
    peers_.emplace(++last_peer_, std::make_unique<ControlConnection>(std::move(guest.channel)));
    events.push_back(Hear(last_peer_));
  }
  return events;
}

void ControlServer::Send(uint64_t peer, const Message& message) {
  if (const auto found = peers_.find(peer); found != peers_.end()) found->second->Send(message);
}

}  // namespace headrace::reader::service
