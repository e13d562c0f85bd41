#include "reader/service/control.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "base/clock.h"
#include "base/error.h"

namespace headrace::reader::service {
namespace {

constexpr size_t kReadBytes = 64 << 10;
constexpr int64_t kAcceptAgainNs = 100'000'000;  // after descriptors ran out
// A peer that does not read so much is disconnected: it comes again and is told anew.
constexpr uint64_t kMostUnsent = uint64_t{512} << 20;

sockaddr_un NameOf(const std::string& path) {
  sockaddr_un name = {};
  name.sun_family = AF_UNIX;
  if (path.size() >= sizeof name.sun_path)
    throw Error(ExitCode::kUsage, "the path of a socket has at most 107 bytes", path,
                "choose a shorter folder");
  std::memcpy(name.sun_path, path.data(), path.size());
  return name;
}

int UnixSocket(const std::string& path) {
  const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (fd < 0) throw ErrnoError(errno, "make a socket for", path);
  return fd;
}

}  // namespace

bool Listens(const std::string& path) {
  const sockaddr_un name = NameOf(path);
  const int probe = UnixSocket(path);
  const bool listens =
      connect(probe, reinterpret_cast<const sockaddr*>(&name), sizeof name) == 0 || errno == EAGAIN;
  close(probe);
  return listens;
}

ControlConnection::ControlConnection(int fd) : fd_(fd) {}

ControlConnection::~ControlConnection() { close(fd_); }

std::unique_ptr<ControlConnection> ControlConnection::Connect(const std::string& path) {
  const sockaddr_un name = NameOf(path);
  const int fd = UnixSocket(path);
  auto connection = std::make_unique<ControlConnection>(fd);
  if (connect(fd, reinterpret_cast<const sockaddr*>(&name), sizeof name) == 0) return connection;
  if (errno == ENOENT || errno == ECONNREFUSED || errno == EAGAIN) return nullptr;
  throw ErrnoError(errno, "connect to", path);
}

void ControlConnection::Send(const Message& message) {
  out_ += Serialize(message);
  Flush();
}

void ControlConnection::Flush() {
  while (sent_ < out_.size()) {
    const ssize_t sent =
        send(fd_, out_.data() + sent_, out_.size() - sent_, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent <= 0) break;  // no room, or gone: reading tells
    sent_ += static_cast<size_t>(sent);
  }
  if (sent_ < out_.size()) return;
  out_.clear();
  sent_ = 0;
}

void ControlConnection::Fill() {
  for (;;) {
    const size_t have = in_.size();
    in_.resize(have + kReadBytes);
    const ssize_t got = recv(fd_, in_.data() + have, kReadBytes, MSG_DONTWAIT);
    in_.resize(have + static_cast<size_t>(std::max<ssize_t>(got, 0)));
    if (got > 0) continue;
    if (got < 0 && errno == EINTR) continue;
    is_closed_ = got == 0 || (errno != EAGAIN && errno != EWOULDBLOCK);
    return;
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
  return messages;
}

std::vector<Message> ControlConnection::Receive(int timeout_ms, int wake_fd) {
  Flush();
  pollfd both[2] = {{fd_, static_cast<short>(POLLIN | (unsent_bytes() > 0 ? POLLOUT : 0)), 0},
                    {wake_fd, POLLIN, 0}};
  if (poll(both, 2, timeout_ms) <= 0 || both[0].revents == 0) return {};
  Flush();
  Fill();
  return Parse();
}

ControlServer::ControlServer(const std::string& path) : path_(path) {
  const sockaddr_un name = NameOf(path);
  struct stat status = {};
  if (lstat(path.c_str(), &status) == 0) {
    if (!S_ISSOCK(status.st_mode))
      throw Error(ExitCode::kUsage, "there is a file of that name, and it is not a socket", path,
                  "choose another name");
    if (Listens(path))
      throw Error(ExitCode::kUsage, "another dispatcher has this job", path,
                  "end it, or give another --job");
    unlink(path.c_str());  // of one that was killed
  }
  fd_ = UnixSocket(path);
  const mode_t mask = umask(0177);
  const int bound = bind(fd_, reinterpret_cast<const sockaddr*>(&name), sizeof name);
  const int error = errno;
  umask(mask);
  if (bound != 0 || listen(fd_, 128) != 0 || stat(path.c_str(), &status) != 0) {
    close(fd_);
    throw ErrnoError(bound != 0 ? error : errno, "listen at", path);
  }
  device_ = status.st_dev;
  inode_ = status.st_ino;
}

ControlServer::~ControlServer() {
  struct stat status = {};
  if (stat(path_.c_str(), &status) == 0 && status.st_dev == device_ && status.st_ino == inode_)
    unlink(path_.c_str());
  close(fd_);
}

std::vector<ControlServer::Event> ControlServer::Wait(int timeout_ms) {
  std::vector<pollfd> polled = {{MonotonicNs() < accept_ns_ ? -1 : fd_, POLLIN, 0}};
  std::vector<uint64_t> ids = {0};
  for (const auto& [id, peer] : peers_) {
    polled.push_back(
        {peer->fd(), static_cast<short>(POLLIN | (peer->unsent_bytes() > 0 ? POLLOUT : 0)), 0});
    ids.push_back(id);
  }
  std::vector<Event> events;
  if (poll(polled.data(), polled.size(), timeout_ms) <= 0) return events;
  for (size_t i = 1; i < polled.size(); ++i) {
    if (polled[i].revents == 0) continue;
    ControlConnection& peer = *peers_.at(ids[i]);
    Event event;
    event.peer = ids[i];
    try {
      event.messages = peer.Receive(0);
      event.is_gone = peer.is_closed() || peer.unsent_bytes() > kMostUnsent;
    } catch (const Error&) {
      event.is_gone = true;
    }
    if (event.is_gone) peers_.erase(ids[i]);
    events.push_back(std::move(event));
  }
  if (polled[0].revents != 0) {
    const int fd = accept4(fd_, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (fd >= 0) {
      peers_.emplace(++last_peer_, std::make_unique<ControlConnection>(fd));
    } else if (errno != EAGAIN && errno != EINTR) {
      accept_ns_ = MonotonicNs() + kAcceptAgainNs;  // whoever waits there would wake every poll
    }
  }
  return events;
}

void ControlServer::Send(uint64_t peer, const Message& message) {
  if (const auto found = peers_.find(peer); found != peers_.end()) found->second->Send(message);
}

}  // namespace headrace::reader::service
