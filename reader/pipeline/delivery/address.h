// DeliveryAddress: where batches go. "inline": to the consumer in this process; "unix:PATH": over
// the Unix socket PATH; "shm:PATH": through a ring in shared memory that the two processes agree on
// over the socket PATH; "tcp:HOST:PORT" and "tls:HOST:PORT": over a network, between processes of a
// job that have its token (handshake.h).
#pragma once
#include <cstdint>
#include <optional>
#include <string>

#include "reader/pipeline/delivery/tcp_socket.h"

namespace headrace::reader {

enum class DeliveryKind : uint8_t { kInline = 0, kUnix = 1, kShm = 2, kTcp = 3, kTls = 4 };

struct DeliveryAddress {
  DeliveryKind kind = DeliveryKind::kInline;
  std::string path = {};  // of kUnix and kShm; absolute
  HostPort at = {};       // of kTcp and kTls
};

inline bool IsNetwork(DeliveryKind kind) {
  return kind == DeliveryKind::kTcp || kind == DeliveryKind::kTls;
}
const char* NameOf(DeliveryKind kind);  // "unix"

// `path` of the result is absolute: a relative one is taken from `folder`. Throws Error kUsage,
// with what is wrong in fact() and what to do in fix().
DeliveryAddress ParseDeliveryAddress(const std::string& text, const std::string& folder);

// What may be used without the user's word: TLS anywhere, plain TCP on this machine alone. Throws
// Error kPrivilege for plain TCP elsewhere, unless `is_insecure`. Empty: the user could not say so.
void CheckExposure(const DeliveryAddress& at, std::optional<bool> is_insecure);

std::string FormatDeliveryAddress(const DeliveryAddress& address);  // "unix:/run/a.sock"

}  // namespace headrace::reader
