#include "probes/host/fork_events.h"

#include <fmt/format.h>
#include <linux/cn_proc.h>
#include <linux/connector.h>
#include <linux/netlink.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace headrace::probes {
namespace {

constexpr int kReceiveBytes = 8 << 20;
constexpr size_t kMaxMessages = 100'000;  // in one Take
constexpr size_t kHeaderBytes = NLMSG_HDRLEN + sizeof(cn_msg);

// The event in a message of `size` bytes; fields that the kernel did not send are 0.
std::optional<proc_event> ParseEvent(const char* message, size_t size) {
  if (size < kHeaderBytes + offsetof(proc_event, event_data)) return std::nullopt;
  cn_msg header;
  std::memcpy(&header, message + NLMSG_HDRLEN, sizeof header);
  if (header.id.idx != CN_IDX_PROC || header.id.val != CN_VAL_PROC) return std::nullopt;
  proc_event event = {};
  std::memcpy(&event, message + kHeaderBytes, std::min(sizeof event, size - kHeaderBytes));
  return event;
}

bool SendListen(int socket) {
  const proc_cn_mcast_op operation = PROC_CN_MCAST_LISTEN;
  cn_msg message = {};
  message.id = {CN_IDX_PROC, CN_VAL_PROC};
  message.len = sizeof operation;
  alignas(nlmsghdr) char request[kHeaderBytes + sizeof operation] = {};
  nlmsghdr header = {};
  header.nlmsg_len = sizeof request;
  header.nlmsg_type = NLMSG_DONE;
  std::memcpy(request, &header, sizeof header);
  std::memcpy(request + NLMSG_HDRLEN, &message, sizeof message);
  std::memcpy(request + kHeaderBytes, &operation, sizeof operation);
  return send(socket, request, sizeof request, 0) >= 0;
}

}  // namespace

ForkEvents::~ForkEvents() {
  if (socket_ >= 0) close(socket_);
}

Availability ForkEvents::Start(const Host& host) {
  const auto fail = [&](const std::string& why) {
    if (socket_ >= 0) close(socket_);
    socket_ = -1;
    return Availability::Unavailable(
        why + ": children that live shorter than the time between two looks are missed",
        "the initial user and pid namespaces, and before Linux 6.6 CAP_NET_ADMIN; or level 3");
  };
  const auto fail_call = [&](const char* call) {
    return fail(fmt::format("{}: {}", call, std::strerror(errno)));
  };
  if (!host.is_this_machine()) return fail("process events speak of this machine only");
  socket_ = socket(PF_NETLINK, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, NETLINK_CONNECTOR);
  if (socket_ < 0) return fail_call("socket(NETLINK_CONNECTOR)");
  if (setsockopt(socket_, SOL_SOCKET, SO_RCVBUFFORCE, &kReceiveBytes, sizeof kReceiveBytes) != 0) {
    setsockopt(socket_, SOL_SOCKET, SO_RCVBUF, &kReceiveBytes, sizeof kReceiveBytes);
  }
  sockaddr_nl address = {};
  address.nl_family = AF_NETLINK;
  address.nl_groups = CN_IDX_PROC;
  if (bind(socket_, reinterpret_cast<sockaddr*>(&address), sizeof address) != 0) {
    return fail_call("bind(process events)");
  }
  if (!SendListen(socket_)) return fail_call("listen for process events");
  // The kernel answers before send returns; news of others may already stand before the answer.
  char message[1024];
  for (size_t i = 0; i < 1000; i++) {
    const ssize_t n = recv(socket_, message, sizeof message, 0);
    if (n < 0) break;
    const auto event = ParseEvent(message, static_cast<size_t>(n));
    if (!event || event->what != proc_event::PROC_EVENT_NONE) continue;
    errno = static_cast<int>(event->event_data.ack.err);
    if (errno != 0) return fail_call("listen for process events");
    return Availability::Ok("the kernel tells of every fork");
  }
  return fail_call("answer to listening for process events");
}

std::vector<ForkEvent> ForkEvents::Take() {
  std::vector<ForkEvent> events;
  char message[1024];
  for (size_t i = 0; socket_ >= 0 && i < kMaxMessages; i++) {
    const ssize_t n = recv(socket_, message, sizeof message, 0);
    if (n < 0) {
      if (errno == EINTR) continue;
      if (errno != ENOBUFS) break;
      lost_++;
      continue;
    }
    const auto event = ParseEvent(message, static_cast<size_t>(n));
    if (!event) continue;
    const auto time_ns = static_cast<int64_t>(event->timestamp_ns);
    if (event->what == proc_event::PROC_EVENT_FORK) {
      const auto& fork = event->event_data.fork;
      if (fork.child_pid == fork.child_tgid) {
        events.push_back({fork.child_tgid, fork.parent_tgid, {}, time_ns});
      }
    } else if (event->what == proc_event::PROC_EVENT_EXIT) {
      const auto& exit = event->event_data.exit;
      if (exit.process_pid == exit.process_tgid) {
        events.push_back({exit.process_tgid, 0, static_cast<int>(exit.exit_code), time_ns});
      }
    }
  }
  return events;
}

}  // namespace headrace::probes
