#include "reader/pipeline/delivery/tcp_socket.h"

#include <arpa/inet.h>
#include <fmt/format.h>
// The system's header, as the C library's has not all that TCP_INFO tells; both do not go together.
#include <linux/tcp.h>
#include <netdb.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstddef>
#include <cstring>
#include <memory>

#include "base/clock.h"
#include "base/error.h"

namespace headrace::reader {
namespace {

constexpr int kMostCallers = 1024;  // connections that are not accepted yet
constexpr int kLookMs = 100;        // between looks at the stop request

struct FreeAddresses {
  void operator()(addrinfo* list) const { freeaddrinfo(list); }
};
using Addresses = std::unique_ptr<addrinfo, FreeAddresses>;

// Null when the name is not known; `why` says so.
Addresses Resolve(const HostPort& place, int flags, std::string* why) {
  addrinfo hints = {};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = flags | AI_NUMERICSERV;
  addrinfo* list = nullptr;
  const int error =
      getaddrinfo(place.host.c_str(), std::to_string(place.port).c_str(), &hints, &list);
  if (error != 0) *why = gai_strerror(error);
  return Addresses(error == 0 ? list : nullptr);
}

HostPort NameOf(const sockaddr_storage& address) {
  char text[INET6_ADDRSTRLEN] = {};
  if (address.ss_family == AF_INET) {
    const auto& v4 = reinterpret_cast<const sockaddr_in&>(address);
    inet_ntop(AF_INET, &v4.sin_addr, text, sizeof text);
    return {text, ntohs(v4.sin_port)};
  }
  if (address.ss_family != AF_INET6) return {};
  const auto& v6 = reinterpret_cast<const sockaddr_in6&>(address);
  inet_ntop(AF_INET6, &v6.sin6_addr, text, sizeof text);
  constexpr const char* kMapped = "::ffff:";  // IPv4 on a socket for both
  const std::string host = text;
  return {host.starts_with(kMapped) ? host.substr(std::strlen(kMapped)) : host,
          ntohs(v6.sin6_port)};
}

void Option(int fd, int level, int name, int value) {
  setsockopt(fd, level, name, &value, sizeof value);
}

// 0 once it stands, else errno; ETIMEDOUT and ECANCELED are ours.
int AwaitConnected(int fd, int64_t until_ns, const std::function<bool()>& stopped) {
  for (;;) {
    if (stopped && stopped()) return ECANCELED;
    if (MonotonicNs() > until_ns) return ETIMEDOUT;
    pollfd one = {fd, POLLOUT, 0};
    if (poll(&one, 1, kLookMs) <= 0) continue;
    int error = 0;
    socklen_t size = sizeof error;
    getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &size);
    return error;
  }
}

}  // namespace

HostPort ParseHostPort(const std::string& text) {
  HostPort place;
  const size_t colon = text.rfind(':');
  const char* const end = text.data() + text.size();
  if (colon != std::string::npos) {
    place.host = text.substr(0, colon);
    if (place.host.size() > 2 && place.host.front() == '[' && place.host.back() == ']')
      place.host = place.host.substr(1, place.host.size() - 2);
    const auto [stop, error] = std::from_chars(text.data() + colon + 1, end, place.port);
    if (error == std::errc() && stop == end && !place.host.empty() &&
        place.host.find_first_of("[]") == std::string::npos &&
        (text.front() == '[' || place.host.find(':') == std::string::npos))
      return place;
  }
  throw Error(ExitCode::kUsage, fmt::format("'{}' is not a host and a port", Printable(text, 80)),
              "", "write HOST:PORT, or [ADDRESS]:PORT for IPv6");
}

std::string FormatHostPort(const HostPort& place) {
  return place.host.find(':') == std::string::npos ? fmt::format("{}:{}", place.host, place.port)
                                                   : fmt::format("[{}]:{}", place.host, place.port);
}

HostPort LocalAddress(int fd) {
  sockaddr_storage address = {};
  socklen_t size = sizeof address;
  if (getsockname(fd, reinterpret_cast<sockaddr*>(&address), &size) != 0) return {};
  return NameOf(address);
}

HostPort PeerAddress(int fd) {
  sockaddr_storage address = {};
  socklen_t size = sizeof address;
  if (getpeername(fd, reinterpret_cast<sockaddr*>(&address), &size) != 0) return {};
  return NameOf(address);
}

bool IsLoopback(const std::string& host) {
  in_addr v4 = {};
  in6_addr v6 = {};
  if (inet_pton(AF_INET, host.c_str(), &v4) == 1) return ntohl(v4.s_addr) >> 24 == 127;
  return inet_pton(AF_INET6, host.c_str(), &v6) == 1 && IN6_IS_ADDR_LOOPBACK(&v6);
}

void SetTcpOptions(int fd, bool is_control) {
  constexpr int kIdleS = 4, kEveryS = 2, kProbes = 3, kUnconfirmedMs = 10'000;
  Option(fd, IPPROTO_TCP, TCP_NODELAY, 1);
  Option(fd, SOL_SOCKET, SO_KEEPALIVE, 1);
  Option(fd, IPPROTO_TCP, TCP_KEEPIDLE, kIdleS);
  Option(fd, IPPROTO_TCP, TCP_KEEPINTVL, kEveryS);
  Option(fd, IPPROTO_TCP, TCP_KEEPCNT, kProbes);
  // Not of data: a consumer that takes nothing for a minute is slow, and its machine is there.
  if (is_control) Option(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, kUnconfirmedMs);
}

std::optional<int64_t> NetworkNs(int fd) {
  tcp_info info = {};
  socklen_t size = sizeof info;
  if (getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &size) != 0 ||
      size < offsetof(tcp_info, tcpi_rwnd_limited) + sizeof info.tcpi_rwnd_limited)
    return std::nullopt;
  const uint64_t us = info.tcpi_busy_time - std::min(info.tcpi_busy_time, info.tcpi_rwnd_limited);
  return static_cast<int64_t>(us) * 1000;
}

int ConnectTcp(const HostPort& to, int64_t timeout_ns, const std::function<bool()>& stopped,
               std::string* why) {
  const int64_t until = MonotonicNs() + timeout_ns;
  const Addresses addresses = Resolve(to, 0, why);
  for (const addrinfo* one = addresses.get(); one != nullptr; one = one->ai_next) {
    const int fd = socket(one->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0) throw ErrnoError(errno, "make a socket for", FormatHostPort(to));
    int error = connect(fd, one->ai_addr, one->ai_addrlen) == 0 ? 0 : errno;
    if (error == EINPROGRESS || error == EINTR) error = AwaitConnected(fd, until, stopped);
    if (error == 0) return fd;
    close(fd);
    *why = std::strerror(error);
    if (error == ECANCELED) break;
  }
  return -1;
}

TcpListener::TcpListener(const HostPort& at) {
  const std::string where = FormatHostPort(at);
  std::string why;
  const Addresses addresses = Resolve(at, AI_PASSIVE, &why);
  if (!addresses)
    throw Error(ExitCode::kUsage, fmt::format("is not an address to listen at: {}", why), where,
                "give one of this machine's, or 0.0.0.0 for all");
  const addrinfo& first = *addresses;
  fd_ = socket(first.ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (fd_ < 0) throw ErrnoError(errno, "make a socket for", where);
  Option(fd_, SOL_SOCKET, SO_REUSEADDR, 1);
  if (bind(fd_, first.ai_addr, first.ai_addrlen) != 0 || listen(fd_, kMostCallers) != 0) {
    const int error = errno;
    close(fd_);
    if (error == EADDRINUSE)
      throw Error(ExitCode::kUsage, "another process listens there", where,
                  "choose another port, or 0 for a free one");
    if (error == EADDRNOTAVAIL)
      throw Error(ExitCode::kUsage, "is not an address of this machine", where,
                  "give one of its own, or 0.0.0.0 for all");
    throw ErrnoError(error, "listen at", where);
  }
  at_ = {at.host, LocalAddress(fd_).port};
}

TcpListener::~TcpListener() { close(fd_); }

}  // namespace headrace::reader
