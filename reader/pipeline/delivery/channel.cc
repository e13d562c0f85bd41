#include "reader/pipeline/delivery/channel.h"

#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

namespace headrace::reader {
namespace {

// The result of a call on a plain socket, in a channel's terms.
ptrdiff_t JudgeCall(ssize_t moved) {
  if (moved >= 0) return moved;
  return errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR ? -1 : 0;
}

}  // namespace

Channel::Channel(int fd, std::unique_ptr<TlsSession> tls) : fd_(fd), tls_(std::move(tls)) {}

Channel::Channel(Channel&& other) noexcept
    : fd_(std::exchange(other.fd_, -1)), tls_(std::move(other.tls_)) {}

Channel::~Channel() {
  tls_.reset();
  if (fd_ >= 0) close(fd_);
}

void Channel::Trust() {
  if (tls_) tls_->Trust();
}

ptrdiff_t Channel::Read(std::span<uint8_t> bytes) {
  if (tls_) return tls_->Read(bytes);
  return JudgeCall(recv(fd_, bytes.data(), bytes.size(), MSG_DONTWAIT));
}

ptrdiff_t Channel::Write(std::span<const uint8_t> bytes) {
  if (tls_) return tls_->Write(bytes);
  return JudgeCall(send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL | MSG_DONTWAIT));
}

}  // namespace headrace::reader
