// TCP stream sockets: names and numbers of hosts, the end that listens, the end that connects.
#pragma once
#include <cstdint>
#include <functional>
#include <optional>
#include <string>

namespace headrace::reader {

// A host, by name or number, and a port.
struct HostPort {
  std::string host;
  uint16_t port = 0;
};

// "HOST:PORT" or "[v6]:PORT". Throws Error kUsage for anything else.
HostPort ParseHostPort(const std::string& text);
std::string FormatHostPort(const HostPort& place);

// The local and the other end's address of a connected socket; empty host when it has none.
HostPort LocalAddress(int fd);
HostPort PeerAddress(int fd);
// Whether a number is of this machine alone: 127.x.x.x or ::1. A name is not.
bool IsLoopback(const std::string& host);

// A socket that connects, or has connected, without waiting longer than `timeout_ns`; the caller
// closes it. -1: nobody listens there, or nothing answers; `why` says which. Stops early, with -1,
// when `stopped` says so. Throws Error when the system makes no socket.
int ConnectTcp(const HostPort& to, int64_t timeout_ns, const std::function<bool()>& stopped,
               std::string* why);

// What all TCP connections have: small messages go at once, and a machine that vanished is noticed
// within about 10 s where nothing is under way. `is_control`: messages go both ways all the time,
// so that one which is not confirmed for so long means the same.
void SetTcpOptions(int fd, bool is_control);

// Time since the connection was made in which bytes were on their way or waited to be, less that in
// which the receiver had no room (tcp_info: tcpi_busy_time, tcpi_rwnd_limited). None for another
// socket, or where the system does not say.
std::optional<int64_t> NetworkNs(int fd);

// Not thread-safe.
class TcpListener {
 public:
  // Port 0: a free one. Throws Error kUsage when the port is taken, or the host is not this
  // machine's; another when the system refuses.
  explicit TcpListener(const HostPort& at);
  ~TcpListener();
  TcpListener(const TcpListener&) = delete;
  TcpListener& operator=(const TcpListener&) = delete;

  int fd() const { return fd_; }              // for poll and accept, which do not wait
  const HostPort& at() const { return at_; }  // with the port that it has

 private:
  int fd_ = -1;
  HostPort at_;
};

}  // namespace headrace::reader
