// Fuzzes what a stranger can say where a job's processes meet over a network: any bytes, to a
// listener with and without TLS and to a caller. They are never let in, and end in an Error or wait
// for more.
//
// fuzz run: share=1 length=1024
// fuzz sources: reader/pipeline/delivery/handshake.cc reader/pipeline/delivery/channel.cc
// fuzz sources: reader/pipeline/delivery/tls.cc reader/pipeline/delivery/token.cc
// fuzz sources: reader/pipeline/delivery/tcp_socket.cc
#include <sys/socket.h>
#include <unistd.h>

#include <cstdint>
#include <string>

#include "base/check.h"
#include "base/error.h"
#include "reader/pipeline/delivery/handshake.h"

namespace {

using namespace headrace;
using namespace headrace::reader;

const std::shared_ptr<const Credentials>& Ours() {
  static const auto credentials = std::make_shared<const Credentials>(
      Token("0123456789abcdef0123456789abcdef", "the fuzzer"), CertificateFiles{});
  return credentials;
}

void Hear(const uint8_t* data, size_t size, Side side, bool is_encrypted) {
  int fds[2];
  HR_CHECK(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, fds) == 0, "sockets");
  {
    Handshake handshake(fds[0], {side, Purpose::kControl, is_encrypted, Ours()}, "a stranger");
    try {
      // In two parts: a greeting may be cut anywhere.
      const size_t first = size == 0 ? 0 : data[0] % size;
      send(fds[1], data, first, MSG_NOSIGNAL);
      HR_CHECK(!handshake.Step(), "a stranger was let in");
      send(fds[1], data + first, size - first, MSG_NOSIGNAL);
      if (size % 2 == 0) shutdown(fds[1], SHUT_WR);
      HR_CHECK(!handshake.Step(), "a stranger was let in");
    } catch (const Error& error) {
      HR_CHECK(error.code() == ExitCode::kFailure || error.code() == ExitCode::kPrivilege,
               error.what());
    }
  }
  close(fds[1]);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  Hear(data, size, Side::kListener, false);
  Hear(data, size, Side::kCaller, false);
  Hear(data, size, Side::kListener, true);
  Hear(data, size, Side::kCaller, true);
  try {
    const HostPort place = ParseHostPort(std::string(reinterpret_cast<const char*>(data), size));
    HR_CHECK(ParseHostPort(FormatHostPort(place)).port == place.port, "an address has one meaning");
  } catch (const Error& error) {
    HR_CHECK(error.code() == ExitCode::kUsage, error.what());
  }
  return 0;
}
