#include "reader/pipeline/delivery/socket.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <utility>

#include "base/check.h"
#include "base/clock.h"
#include "base/error.h"

namespace headrace::reader {
namespace {

constexpr timeval kLook = {0, 100'000};  // between looks at the stop request
// What a call that may wait moves at most: a wait is one for room or bytes, and not for all of
// them.
constexpr size_t kStep = 64 << 10;
constexpr size_t kGathered = 256 << 10;
constexpr size_t kMaxFds = 4;  // in one message

bool IsGone(int error) {
  return error == EPIPE || error == ECONNRESET || error == ENOTCONN || error == ETIMEDOUT ||
         error == EHOSTUNREACH || error == ENETUNREACH;
}
bool IsLater(int error) { return error == EAGAIN || error == EWOULDBLOCK || error == EINTR; }

}  // namespace

Socket::Socket(Channel channel, std::string peer, std::function<bool()> stopped)
    : channel_(std::move(channel)), peer_(std::move(peer)), stopped_(std::move(stopped)) {
  // Waiting inside the call, as poll says that there is room only once most of the buffer is empty.
  fcntl(fd(), F_SETFL, fcntl(fd(), F_GETFL) & ~O_NONBLOCK);
  setsockopt(fd(), SOL_SOCKET, SO_RCVTIMEO, &kLook, sizeof kLook);
  setsockopt(fd(), SOL_SOCKET, SO_SNDTIMEO, &kLook, sizeof kLook);
}

void Socket::AwaitChannel(short event) const {
  constexpr int kLookMs = kLook.tv_usec / 1000;
  pollfd one = {fd(), event, 0};
  poll(&one, 1, kLookMs);
}

void Socket::AwaitLeast(size_t least) {
  if (least == least_) return;
  const int bytes = static_cast<int>(least);
  setsockopt(fd(), SOL_SOCKET, SO_RCVLOWAT, &bytes, sizeof bytes);
  least_ = least;
}

void Socket::Gone() const { throw Error(ExitCode::kFailure, fmt::format("{} is gone", peer_)); }

void Socket::CheckStopped() const {
  if (stopped_ && stopped_())
    throw Error(ExitCode::kInterrupted, fmt::format("stopped while waiting for {}", peer_));
}

void Socket::WriteEncrypted(std::span<const uint8_t> bytes,
                            const std::function<void(bool)>& waits) {
  while (!bytes.empty()) {
    const ptrdiff_t sent = channel_.Write(bytes);
    if (sent == 0) Gone();
    if (sent > 0) {
      bytes = bytes.subspan(static_cast<size_t>(sent));
      continue;
    }
    CheckStopped();
    if (waits) waits(true);
    AwaitChannel(POLLOUT);
    if (waits) waits(false);
  }
}

// Each write is a record or more: small parts are put together.
void Socket::WriteEncryptedParts(const std::vector<iovec>& parts,
                                 const std::function<void(bool)>& waits) {
  constexpr size_t kRecordBytes = 16 << 10;
  std::vector<uint8_t> small;
  for (const iovec& part : parts) {
    const std::span<const uint8_t> bytes(static_cast<const uint8_t*>(part.iov_base), part.iov_len);
    if (small.size() + bytes.size() <= kRecordBytes) {
      small.insert(small.end(), bytes.begin(), bytes.end());
      continue;
    }
    WriteEncrypted(small, waits);
    small.clear();
    WriteEncrypted(bytes, waits);
  }
  WriteEncrypted(small, waits);
}

void Socket::Write(std::vector<iovec> parts, const std::function<void(bool)>& waits) {
  if (channel_.is_encrypted()) return WriteEncryptedParts(parts, waits);
  constexpr size_t kMostParts = 512;  // below IOV_MAX
  bool full = false;
  for (size_t first = 0; first < parts.size();) {
    ssize_t sent = 0;
    if (full) {
      CheckStopped();
      if (waits) waits(true);
      sent = send(fd(), parts[first].iov_base, std::min(parts[first].iov_len, kStep), MSG_NOSIGNAL);
      if (waits) waits(false);
    } else {
      msghdr message = {};
      message.msg_iov = parts.data() + first;
      message.msg_iovlen = std::min(parts.size() - first, kMostParts);
      sent = sendmsg(fd(), &message, MSG_NOSIGNAL | MSG_DONTWAIT);
    }
    if (sent < 0) {
      if (IsGone(errno)) Gone();
      if (!IsLater(errno)) throw ErrnoError(errno, "write to", peer_);
      full = true;
      continue;
    }
    full = false;
    auto left = static_cast<size_t>(sent);
    while (first < parts.size() && left >= parts[first].iov_len) left -= parts[first++].iov_len;
    if (left == 0) continue;
    parts[first].iov_base = static_cast<uint8_t*>(parts[first].iov_base) + left;
    parts[first].iov_len -= left;
  }
}

void Socket::Write(std::span<const uint8_t> bytes) {
  Write({{const_cast<uint8_t*>(bytes.data()), bytes.size()}});
}

ptrdiff_t Socket::Receive(std::span<uint8_t> bytes, bool now) {
  if (channel_.is_encrypted()) {
    if (!now) AwaitChannel(POLLIN);
    return channel_.Read(bytes);
  }
  if (now) return channel_.Read(bytes);
  const ssize_t got = recv(fd(), bytes.data(), bytes.size(), 0);
  return got < 0 && IsLater(errno) ? -1 : std::max<ssize_t>(got, 0);
}

bool Socket::Read(std::span<uint8_t> bytes, int64_t timeout_ns,
                  const std::function<void(bool)>& waits) {
  const int64_t start = timeout_ns > 0 ? MonotonicNs() : 0;
  bool empty = false;
  for (size_t at = 0; at < bytes.size();) {
    ptrdiff_t got = 0;
    if (empty) {
      CheckStopped();
      if (waits) waits(true);
      if (gathers_) AwaitLeast(std::min(bytes.size() - at, kGathered));
      got = Receive(bytes.subspan(at, std::min(bytes.size() - at, gathers_ ? kGathered : kStep)),
                    false);
      if (waits) waits(false);
    } else {
      got = Receive(bytes.subspan(at), true);
    }
    if (got > 0) {
      at += static_cast<size_t>(got);
      empty = false;
      continue;
    }
    if (got == 0) {
      if (at == 0) return false;
      Gone();
    }
    if (timeout_ns > 0 && MonotonicNs() - start > timeout_ns) {
      throw Error(ExitCode::kFailure,
                  fmt::format("{} said nothing for {} s", peer_, timeout_ns / 1'000'000'000));
    }
    empty = true;
  }
  return true;
}

size_t Socket::ReadSome(std::span<uint8_t> bytes) {
  return static_cast<size_t>(std::max<ptrdiff_t>(channel_.Read(bytes), 0));
}

size_t Socket::WriteSome(std::span<const uint8_t> bytes) {
  return static_cast<size_t>(std::max<ptrdiff_t>(channel_.Write(bytes), 0));
}

void Socket::WriteWithDescriptors(std::span<const uint8_t> bytes, std::span<const int> fds) {
  HR_CHECK(fds.size() <= kMaxFds, "too many descriptors for one message");
  iovec part = {const_cast<uint8_t*>(bytes.data()), bytes.size()};
  alignas(cmsghdr) char control[CMSG_SPACE(kMaxFds * sizeof(int))] = {};
  msghdr message = {};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = CMSG_SPACE(fds.size_bytes());
  cmsghdr* head = CMSG_FIRSTHDR(&message);
  head->cmsg_level = SOL_SOCKET;
  head->cmsg_type = SCM_RIGHTS;
  head->cmsg_len = CMSG_LEN(fds.size_bytes());
  std::memcpy(CMSG_DATA(head), fds.data(), fds.size_bytes());
  for (;;) {
    const ssize_t sent = sendmsg(fd(), &message, MSG_NOSIGNAL);
    if (sent >= 0) {
      // The descriptors went with the first byte.
      Write(bytes.subspan(static_cast<size_t>(sent)));
      return;
    }
    if (IsGone(errno)) Gone();
    if (!IsLater(errno)) throw ErrnoError(errno, "pass shared memory to", peer_);
    CheckStopped();
  }
}

bool Socket::ReadWithDescriptors(std::span<uint8_t> bytes, std::span<int> fds) {
  std::fill(fds.begin(), fds.end(), -1);
  size_t num_fds = 0;
  for (size_t at = 0; at < bytes.size();) {
    iovec part = {bytes.data() + at, bytes.size() - at};
    alignas(cmsghdr) char control[CMSG_SPACE(kMaxFds * sizeof(int))];
    msghdr message = {};
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    message.msg_control = control;
    message.msg_controllen = sizeof control;
    const ssize_t got = recvmsg(fd(), &message, MSG_CMSG_CLOEXEC);
    if (got < 0 && IsLater(errno)) {
      CheckStopped();
      continue;
    }
    if (got <= 0) {
      if (got < 0 && !IsGone(errno)) throw ErrnoError(errno, "read from", peer_);
      for (int& fd : fds) {
        if (fd >= 0) close(std::exchange(fd, -1));
      }
      if (at == 0) return false;
      Gone();
    }
    at += static_cast<size_t>(got);
    for (cmsghdr* head = CMSG_FIRSTHDR(&message); head != nullptr;
         head = CMSG_NXTHDR(&message, head)) {
      if (head->cmsg_level != SOL_SOCKET || head->cmsg_type != SCM_RIGHTS) continue;
      const size_t count = (head->cmsg_len - CMSG_LEN(0)) / sizeof(int);
      for (size_t i = 0; i < count; ++i) {
        int fd = -1;
        std::memcpy(&fd, CMSG_DATA(head) + i * sizeof(int), sizeof fd);
        if (num_fds < fds.size()) {
          fds[num_fds++] = fd;
        } else {
          close(fd);
        }
      }
    }
  }
  return true;
}

bool Socket::PeerClosed() const {
  pollfd one = {fd(), POLLRDHUP, 0};
  return poll(&one, 1, 0) > 0 && (one.revents & (POLLRDHUP | POLLHUP | POLLERR)) != 0;
}

}  // namespace headrace::reader
