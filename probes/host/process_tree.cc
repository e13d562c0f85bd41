#include "probes/host/process_tree.h"

#include <fmt/format.h>
#include <linux/cn_proc.h>
#include <linux/connector.h>
#include <linux/netlink.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <set>

#include "base/clock.h"
#include "probes/host/text.h"
#include "probes/process.h"

namespace headrace::probes {
namespace {

constexpr int kReceiveBytes = 1 << 20;
constexpr int64_t kRenameNs = 3'000'000'000;
constexpr size_t kMaxMessages = 100'000;  // drained in one Update

}  // namespace

ProcessTree::ProcessTree(const Host& host, int64_t root_pid) : host_(host), root_pid_(root_pid) {}

ProcessTree::~ProcessTree() {
  if (socket_ >= 0) close(socket_);
}

Availability ProcessTree::Start() {
  std::string why = "process events speak of this machine only";
  const bool follows = host_.is_this_machine() && Subscribe(&why);  // before looking: no gap
  const auto stat = ReadProcessStat(root_pid_, host_.Path("/proc"));
  if (!stat) {
    return Availability::Unavailable(
        fmt::format("open /proc/{}/stat: {}", root_pid_, std::strerror(errno)),
        "a process that is alive and visible here");
  }
  Add(root_pid_, stat->parent_pid);
  Scan();
  Update();
  if (follows) return Availability::Ok("every fork is told by the kernel");
  return Availability::Degraded(
      why +
          ": new processes are looked for at every tick; children that live shorter can be missed",
      "CAP_NET_ADMIN in the initial user and pid namespaces (run as root), or level 3");
}

bool ProcessTree::Subscribe(std::string* why) {
  socket_ = socket(PF_NETLINK, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, NETLINK_CONNECTOR);
  const auto fail = [&](const char* call) {
    *why = fmt::format("{}: {}", call, std::strerror(errno));
    if (socket_ >= 0) close(socket_);
    socket_ = -1;
    return false;
  };
  if (socket_ < 0) return fail("socket(NETLINK_CONNECTOR)");
  if (setsockopt(socket_, SOL_SOCKET, SO_RCVBUFFORCE, &kReceiveBytes, sizeof kReceiveBytes) != 0) {
    setsockopt(socket_, SOL_SOCKET, SO_RCVBUF, &kReceiveBytes, sizeof kReceiveBytes);
  }
  sockaddr_nl address = {};
  address.nl_family = AF_NETLINK;
  address.nl_groups = CN_IDX_PROC;
  if (bind(socket_, reinterpret_cast<sockaddr*>(&address), sizeof address) != 0) {
    return fail("bind(process events)");
  }
  const proc_cn_mcast_op operation = PROC_CN_MCAST_LISTEN;
  cn_msg message = {};
  message.id = {CN_IDX_PROC, CN_VAL_PROC};
  message.len = sizeof operation;
  alignas(nlmsghdr) char request[NLMSG_HDRLEN + sizeof message + sizeof operation] = {};
  nlmsghdr header = {};
  header.nlmsg_len = sizeof request;
  header.nlmsg_type = NLMSG_DONE;
  std::memcpy(request, &header, sizeof header);
  std::memcpy(request + NLMSG_HDRLEN, &message, sizeof message);
  std::memcpy(request + NLMSG_HDRLEN + sizeof message, &operation, sizeof operation);
  if (send(socket_, request, sizeof request, 0) < 0) return fail("listen for process events");
  // The kernel answers at once whether it agrees (cn_proc.c: an event of type "none").
  alignas(nlmsghdr) char answer[1024];
  const ssize_t n = recv(socket_, answer, sizeof answer, 0);
  if (n < 0) return fail("listen for process events");
  const size_t header_bytes = NLMSG_HDRLEN + sizeof(cn_msg);
  if (static_cast<size_t>(n) >=
      header_bytes + offsetof(proc_event, event_data) + sizeof(uint32_t)) {
    proc_event event = {};
    std::memcpy(&event, answer + header_bytes,
                std::min(sizeof event, static_cast<size_t>(n) - header_bytes));
    if (event.what == proc_event::PROC_EVENT_NONE && event.event_data.ack.err != 0) {
      errno = static_cast<int>(event.event_data.ack.err);
      return fail("listen for process events");
    }
  }
  return true;
}

TreeProcess* ProcessTree::FindLive(int64_t pid) {
  const auto it = by_pid_.find(pid);
  return it == by_pid_.end() ? nullptr : &processes_[it->second];
}

void ProcessTree::Add(int64_t pid, int64_t parent_pid, const std::string& name) {
  if (pid <= 0) return;
  if (const auto it = by_pid_.find(pid); it != by_pid_.end()) {
    TreeProcess& before = processes_[it->second];
    if (!before.wait_status) return;
    before.ended_ns = MonotonicNs();  // its number has been given to another
    by_pid_.erase(it);
  }
  if (processes_.size() >= kMaxProcesses) {
    dropped_++;
    return;
  }
  TreeProcess process;
  process.pid = pid;
  process.parent_pid = parent_pid;
  process.name = name;
  process.first_seen_ns = MonotonicNs();
  Look(&process);
  by_pid_[pid] = processes_.size();
  processes_.push_back(std::move(process));
}

void ProcessTree::Look(TreeProcess* process) const {
  const std::string proc = host_.Path("/proc");
  const auto stat = ReadProcessStat(process->pid, proc);
  if (!stat) return;
  process->start_ticks = stat->start_ticks;
  process->name = stat->name;
  std::string command = ReadCommandLine(process->pid, proc);
  if (!command.empty()) process->command = std::move(command);
}

void ProcessTree::DrainEvents() {
  alignas(nlmsghdr) char buffer[4096];
  for (size_t i = 0; i < kMaxMessages; i++) {
    const ssize_t n = recv(socket_, buffer, sizeof buffer, 0);
    if (n < 0) {
      if (errno == EINTR) continue;
      if (errno == ENOBUFS) {
        lost_++;
        scan_everything_ = true;
        continue;
      }
      return;
    }
    if (static_cast<size_t>(n) < NLMSG_HDRLEN + sizeof(cn_msg)) continue;
    cn_msg message;
    std::memcpy(&message, buffer + NLMSG_HDRLEN, sizeof message);
    if (message.id.idx != CN_IDX_PROC || message.id.val != CN_VAL_PROC) continue;
    proc_event event = {};
    const size_t header_bytes = NLMSG_HDRLEN + sizeof(cn_msg);
    std::memcpy(&event, buffer + header_bytes,
                std::min(sizeof event, static_cast<size_t>(n) - header_bytes));
    if (event.what == proc_event::PROC_EVENT_FORK) {
      const auto& fork = event.event_data.fork;
      if (fork.child_pid == fork.child_tgid && by_pid_.contains(fork.parent_tgid)) {
        Add(fork.child_tgid, fork.parent_tgid, FindLive(fork.parent_tgid)->name);
      }
    } else if (event.what == proc_event::PROC_EVENT_EXIT) {
      const auto& exit = event.event_data.exit;
      if (exit.process_pid != exit.process_tgid) continue;
      if (TreeProcess* process = FindLive(exit.process_tgid)) {
        // The leader's end is the process's, unless other threads go on; MarkEnded sees that.
        process->wait_status = static_cast<int>(exit.exit_code);
      }
    }
  }
}

void ProcessTree::Scan() {
  std::multimap<int64_t, int64_t> children;
  for (const std::string& name : host_.List("/proc")) {
    const auto pid = Count(name);
    if (!pid) continue;
    const auto stat = ReadProcessStat(*pid, host_.Path("/proc"));
    if (stat) children.emplace(stat->parent_pid, *pid);
  }
  std::vector<int64_t> open;
  for (const auto& [pid, index] : by_pid_) open.push_back(pid);
  std::set<int64_t> seen(open.begin(), open.end());  // damaged files could show a circle
  while (!open.empty()) {
    const int64_t parent = open.back();
    open.pop_back();
    const auto [begin, end] = children.equal_range(parent);
    for (auto it = begin; it != end; ++it) {
      if (!seen.insert(it->second).second) continue;
      Add(it->second, parent);
      open.push_back(it->second);
    }
  }
}

void ProcessTree::ScanChildren() {
  std::vector<int64_t> open = live_;
  std::set<int64_t> seen(open.begin(), open.end());
  for (size_t i = 0; i < open.size(); i++) {
    const std::string folder = fmt::format("/proc/{}/task", open[i]);
    for (const std::string& thread : host_.List(folder)) {
      const auto text = host_.Read(folder + "/" + thread + "/children");
      if (!text) {
        scan_everything_ = scan_everything_ || errno == ENOENT;  // CONFIG_PROC_CHILDREN is off
        continue;
      }
      for (const std::string_view word : Fields(*text, kMaxProcesses)) {
        const auto pid = Count(word);
        if (!pid || !seen.insert(*pid).second) continue;
        Add(*pid, open[i]);
        open.push_back(*pid);
      }
    }
  }
}

void ProcessTree::MarkEnded() {
  const std::string proc = host_.Path("/proc");
  const int64_t now = MonotonicNs();
  std::erase_if(by_pid_, [&](const auto& entry) {
    TreeProcess& process = processes_[entry.second];
    if (process.start_ticks != 0 && IsAlive(process.pid, process.start_ticks, proc)) {
      if (now - process.first_seen_ns < kRenameNs) Look(&process);  // exec gives another name
      return false;
    }
    process.ended_ns = now;
    return true;
  });
}

void ProcessTree::RebuildLive() {
  std::vector<std::pair<size_t, int64_t>> order;
  for (const auto& [pid, index] : by_pid_) order.emplace_back(index, pid);
  std::sort(order.begin(), order.end());
  live_.clear();
  for (const auto& [index, pid] : order) live_.push_back(pid);
}

void ProcessTree::Update() {
  if (socket_ >= 0) {
    DrainEvents();
  } else {
    ScanChildren();
  }
  if (scan_everything_) Scan();
  scan_everything_ = false;
  MarkEnded();
  RebuildLive();
}

}  // namespace headrace::probes
