#include "reader/pipeline/delivery/address.h"

#include <fmt/format.h>
#include <sys/un.h>

#include <filesystem>

#include "base/error.h"
#include "base/registry.h"

namespace headrace::reader {

const char* NameOf(DeliveryKind kind) {
  constexpr const char* kNames[] = {"inline", "unix", "shm", "tcp", "tls"};
  return kNames[static_cast<size_t>(kind)];
}

DeliveryAddress ParseDeliveryAddress(const std::string& text, const std::string& folder) {
  DeliveryAddress address;
  if (text == "inline") return address;
  const size_t colon = text.find(':');
  const std::string kind = text.substr(0, colon);
  if (colon != std::string::npos && (kind == "tcp" || kind == "tls")) {
    address.kind = kind == "tcp" ? DeliveryKind::kTcp : DeliveryKind::kTls;
    address.at = ParseHostPort(text.substr(colon + 1));
    return address;
  }
  if (colon == std::string::npos || (kind != "unix" && kind != "shm")) {
    const std::string nearest = NearestName(kind, {"inline", "unix", "shm"});
    throw Error(ExitCode::kUsage,
                fmt::format("'{}' is not an address of a consumer{}", Printable(text, 80),
                            nearest.empty() || nearest == kind
                                ? ""
                                : fmt::format(", did you mean '{}{}'?", nearest,
                                              nearest == "inline" ? "" : ":PATH")),
                {}, "write unix:PATH or shm:PATH");
  }
  address.kind = kind == "unix" ? DeliveryKind::kUnix : DeliveryKind::kShm;
  const std::filesystem::path path(text.substr(colon + 1));
  if (path.empty())
    throw Error(ExitCode::kUsage, fmt::format("'{}' names no path", kind + ":"), {},
                fmt::format("write {}:PATH", kind));
  address.path =
      (path.is_absolute() ? path : std::filesystem::path(folder) / path).lexically_normal();
  constexpr size_t kMost = sizeof(sockaddr_un::sun_path) - 1;
  if (address.path.size() > kMost) {
    throw Error(ExitCode::kUsage,
                fmt::format("the path of a socket has at most {} bytes, '{}' has {}", kMost,
                            Printable(address.path), address.path.size()),
                {}, "choose a shorter one, such as /tmp/NAME.sock");
  }
  return address;
}

void CheckExposure(const DeliveryAddress& at, std::optional<bool> is_insecure) {
  if (at.kind != DeliveryKind::kTcp || is_insecure.value_or(false) || at.at.host == "localhost" ||
      IsLoopback(at.at.host))
    return;
  throw Error(
      ExitCode::kPrivilege, "batches could be read and changed on their way",
      FormatDeliveryAddress(at),
      "write tls:" + FormatHostPort(at.at) + (is_insecure ? ", or allow it with --insecure" : ""));
}

std::string FormatDeliveryAddress(const DeliveryAddress& address) {
  const std::string kind = NameOf(address.kind);
  if (address.kind == DeliveryKind::kInline) return kind;
  return kind + ":" + (IsNetwork(address.kind) ? FormatHostPort(address.at) : address.path);
}

}  // namespace headrace::reader
