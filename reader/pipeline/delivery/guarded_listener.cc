#include "reader/pipeline/delivery/guarded_listener.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "base/clock.h"
#include "base/error.h"

namespace headrace::reader {
namespace {

constexpr int64_t kCallNs = 10'000'000'000;
constexpr int64_t kStrangerNs = 5'000'000'000;
constexpr size_t kMostStrangers = 256;
constexpr int kMostLines = 5;                      // a second, about those that are refused
constexpr int64_t kAfterNoneLeftNs = 100'000'000;  // descriptors

}  // namespace

HostPort ReachableAt(const HostPort& at) {
  if (at.host != "0.0.0.0" && at.host != "::") return at;
  ifaddrs* all = nullptr;
  if (getifaddrs(&all) != 0) return at;
  HostPort found = at;
  for (const ifaddrs* one = all; one != nullptr; one = one->ifa_next) {
    if (one->ifa_addr == nullptr || one->ifa_addr->sa_family != AF_INET ||
        (one->ifa_flags & IFF_UP) == 0 || (one->ifa_flags & IFF_LOOPBACK) != 0)
      continue;
    char text[INET_ADDRSTRLEN] = {};
    const auto* address = reinterpret_cast<const sockaddr_in*>(one->ifa_addr);
    if (inet_ntop(AF_INET, &address->sin_addr, text, sizeof text) == nullptr) continue;
    found.host = text;
    break;
  }
  freeifaddrs(all);
  if (found.host == at.host) found.host = "127.0.0.1";  // there is no network
  return found;
}

std::optional<Channel> CallGuarded(const DeliveryAddress& to, Purpose purpose,
                                   std::shared_ptr<const Credentials> credentials,
                                   const std::function<bool()>& stopped, std::string* why) {
  constexpr int kLookMs = 100;
  const std::string where = FormatDeliveryAddress(to);
  if (!credentials)
    throw Error(ExitCode::kPrivilege, "no token is given", where,
                "name the job's with --token-file or $HEADRACE_TOKEN_FILE");
  if (to.at.port == 0) throw Error(ExitCode::kUsage, "names no port", where);
  const int fd = ConnectTcp(to.at, kCallNs, stopped, why);
  if (fd < 0) return std::nullopt;
  SetTcpOptions(fd, purpose == Purpose::kControl);
  Handshake handshake(
      fd,
      {Side::kCaller, purpose, to.kind == DeliveryKind::kTls, std::move(credentials), to.at.host},
      where);
  for (const int64_t until = MonotonicNs() + kCallNs; MonotonicNs() < until;) {
    try {
      if (handshake.Step()) return handshake.Take();
    } catch (const ClosedEarly& error) {
      *why = error.fix().empty() ? error.fact() : fmt::format("{} ({})", error.fact(), error.fix());
      return std::nullopt;
    }
    if (stopped && stopped()) {
      *why = "stopped";
      return std::nullopt;
    }
    pollfd one = handshake.Polled();
    poll(&one, 1, kLookMs);
  }
  *why = "it does not answer";
  return std::nullopt;
}

GuardedListener::GuardedListener(const DeliveryAddress& at, Purpose purpose,
                                 std::shared_ptr<const Credentials> credentials,
                                 std::function<void(const std::string&)> refused)
    : listener_(at.at),
      terms_{Side::kListener, purpose, at.kind == DeliveryKind::kTls, std::move(credentials)},
      refused_(std::move(refused)),
      address_{at.kind, {}, ReachableAt(listener_.at())} {}

void GuardedListener::AddPolled(std::vector<pollfd>* polled) const {
  polled->push_back({MonotonicNs() < accept_ns_ ? -1 : listener_.fd(), POLLIN, 0});
  for (const Stranger& one : strangers_) polled->push_back(one.handshake->Polled());
}

void GuardedListener::Refuse(const std::string& text) {
  constexpr int64_t kSecond = 1'000'000'000;
  if (!refused_) return;
  const int64_t second = MonotonicNs() / kSecond;
  if (second != std::exchange(second_, second)) lines_ = 0;
  if (++lines_ <= kMostLines) refused_(text);
}

void GuardedListener::Accept() {
  if (MonotonicNs() < accept_ns_) return;
  for (;;) {
    const int fd = accept4(listener_.fd(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (fd < 0) {
      // Whoever waits there would wake every poll.
      if (errno == EMFILE || errno == ENFILE || errno == ENOMEM || errno == ENOBUFS)
        accept_ns_ = MonotonicNs() + kAfterNoneLeftNs;
      return;
    }
    SetTcpOptions(fd, terms_.purpose == Purpose::kControl);
    if (strangers_.size() >= kMostStrangers) {
      Refuse(strangers_.front().handshake->peer() + ": too many others greet at the same time");
      strangers_.pop_front();
    }
    strangers_.push_back({std::make_unique<Handshake>(fd, terms_, FormatHostPort(PeerAddress(fd))),
                          MonotonicNs() + kStrangerNs});
  }
}

std::vector<GuardedListener::Guest> GuardedListener::Turn() {
  Accept();
  std::vector<Guest> guests;
  const int64_t now = MonotonicNs();
  std::erase_if(strangers_, [&](Stranger& one) {
    try {
      if (one.handshake->Step()) {
        guests.push_back({one.handshake->Take(), one.handshake->peer()});
        return true;
      }
      if (now < one.until_ns) return false;
      Refuse(one.handshake->peer() + ": did not greet in time");
    } catch (const Error& error) {
      Refuse(error.what());
    }
    return true;
  });
  return guests;
}

}  // namespace headrace::reader
