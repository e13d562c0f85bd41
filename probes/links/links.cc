#include "probes/links/links.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <linux/netlink.h>
#include <linux/sock_diag.h>
#include <linux/unix_diag.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <set>

#include "probes/probe.h"
#include "probes/process.h"

namespace headrace::probes {
namespace {

constexpr size_t kMaxProcesses = 128;
constexpr size_t kMaxMapsBytes = 4 << 20;
constexpr int64_t kLinkPeriodNs = 2'000'000'000;

template <typename T>
bool Number(std::string_view text, T* value, int base = 10) {
  const auto result = std::from_chars(text.data(), text.data() + text.size(), *value, base);
  return result.ec == std::errc() && result.ptr == text.data() + text.size();
}

template <typename Use>
void EachLine(std::string_view text, Use use) {
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size());
    use(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
}

// Cuts the next word off the front.
std::string_view Word(std::string_view* text) {
  const size_t begin = std::min(text->find_first_not_of(" \t"), text->size());
  const size_t end = std::min(text->find_first_of(" \t", begin), text->size());
  const std::string_view word = text->substr(begin, end - begin);
  text->remove_prefix(end);
  return word;
}

std::optional<std::string> ReadLink(const Host& host, const std::string& path) {
  char target[512];
  const ssize_t n = readlink(host.Path(path).c_str(), target, sizeof target);
  if (n < 0) return std::nullopt;
  return std::string(target, static_cast<size_t>(n));
}

// Peers of all UNIX sockets, by inode. /proc/net/unix does not tell them; the kernel's socket
// diagnosis does.
std::map<uint64_t, uint64_t> ReadUnixPeers() {
  std::map<uint64_t, uint64_t> peers;
  const int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_SOCK_DIAG);
  if (fd < 0) return peers;
  const timeval limit = {0, 200'000};
  setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
  struct {
    nlmsghdr header;
    unix_diag_req request;
  } message = {};
  message.header.nlmsg_len = sizeof message;
  message.header.nlmsg_type = SOCK_DIAG_BY_FAMILY;
  message.header.nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP;
  message.request.sdiag_family = AF_UNIX;
  message.request.udiag_states = ~0u;
  message.request.udiag_show = UDIAG_SHOW_PEER;
  bool more = send(fd, &message, sizeof message, 0) == static_cast<ssize_t>(sizeof message);
  alignas(nlmsghdr) char buffer[32768];
  while (more) {
    const ssize_t received = recv(fd, buffer, sizeof buffer, 0);
    if (received <= 0) break;
    auto left = static_cast<unsigned>(received);
    for (auto* header = reinterpret_cast<nlmsghdr*>(buffer); NLMSG_OK(header, left);
         header = NLMSG_NEXT(header, left)) {
      if (header->nlmsg_type == NLMSG_DONE || header->nlmsg_type == NLMSG_ERROR) {
        more = false;
        break;
      }
      if (header->nlmsg_len < NLMSG_LENGTH(sizeof(unix_diag_msg))) continue;
      const auto* socket_info = static_cast<const unix_diag_msg*>(NLMSG_DATA(header));
      const auto* attribute = reinterpret_cast<const nlattr*>(socket_info + 1);
      size_t space = header->nlmsg_len - NLMSG_LENGTH(sizeof(unix_diag_msg));
      while (space >= sizeof(nlattr) && attribute->nla_len >= sizeof(nlattr) &&
             attribute->nla_len <= space) {
        if (attribute->nla_type == UNIX_DIAG_PEER &&
            attribute->nla_len >= sizeof(nlattr) + sizeof(uint32_t)) {
          uint32_t peer = 0;
          std::memcpy(&peer, attribute + 1, sizeof peer);
          peers[socket_info->udiag_ino] = peer;
        }
        const size_t step = std::min<size_t>(NLA_ALIGN(attribute->nla_len), space);
        space -= step;
        attribute =
            reinterpret_cast<const nlattr*>(reinterpret_cast<const char*>(attribute) + step);
      }
    }
  }
  close(fd);
  return peers;
}

}  // namespace

std::optional<std::pair<std::string, uint64_t>> ParseChannel(std::string_view target) {
  const size_t open = target.find(":[");
  if (open == std::string_view::npos || target.back() != ']') return std::nullopt;
  const std::string_view kind = target.substr(0, open);
  if (kind != "pipe" && kind != "socket") return std::nullopt;
  uint64_t inode = 0;
  if (!Number(target.substr(open + 2, target.size() - open - 3), &inode)) return std::nullopt;
  return std::pair(std::string(kind), inode);
}

std::optional<int> ParseAccess(std::string_view fdinfo) {
  std::optional<int> access;
  EachLine(fdinfo, [&](std::string_view line) {
    if (!line.starts_with("flags:")) return;
    line.remove_prefix(6);
    uint64_t flags = 0;
    if (Number(Word(&line), &flags, 8)) access = static_cast<int>(flags & O_ACCMODE);
  });
  if (access && *access > 2) return std::nullopt;
  return access;
}

void ParseSharedMaps(std::string_view maps, Holdings* holdings) {
  EachLine(maps, [&](std::string_view line) {
    const std::string_view range = Word(&line), rights = Word(&line);
    if (rights.size() != 4 || rights[3] != 's') return;
    Word(&line);                                  // offset
    const std::string_view device = Word(&line);  // one device may have many files of a name
    const std::string_view inode = Word(&line);
    const size_t begin = line.find_first_not_of(" \t");
    if (begin == std::string_view::npos) return;
    const std::string_view name = line.substr(begin);
    if (!name.starts_with("/dev/shm/") && !name.starts_with("/memfd:")) return;
    const size_t dash = range.find('-');
    uint64_t from = 0, to = 0, number = 0;
    if (dash == std::string_view::npos || !Number(range.substr(0, dash), &from, 16) ||
        !Number(range.substr(dash + 1), &to, 16) || to <= from || !Number(inode, &number)) {
      return;
    }
    const uint64_t bytes = std::min<uint64_t>(to - from, uint64_t{1} << 50);
    holdings->maps[fmt::format("{} {}", device, number)] += static_cast<int64_t>(bytes);
  });
}

std::vector<std::pair<uint64_t, uint64_t>> ParseTcpPeers(std::string_view table) {
  std::map<std::pair<std::string, std::string>, uint64_t> by_ends;
  EachLine(table, [&](std::string_view line) {
    std::string_view words[10];
    for (std::string_view& word : words) word = Word(&line);
    uint64_t inode = 0;
    if (words[3] != "01" || !Number(words[9], &inode) || inode == 0) return;  // established
    by_ends[{std::string(words[1]), std::string(words[2])}] = inode;
  });
  std::vector<std::pair<uint64_t, uint64_t>> peers;
  for (const auto& [ends, inode] : by_ends) {
    const auto other = by_ends.find({ends.second, ends.first});
    if (other != by_ends.end()) peers.push_back({inode, other->second});
  }
  return peers;
}

std::optional<Holdings> ReadHoldings(const Host& host, int64_t pid) {
  const std::string folder = fmt::format("/proc/{}", pid);
  if (access(host.Path(folder + "/fd").c_str(), R_OK | X_OK) != 0) return std::nullopt;
  Holdings holdings;
  size_t seen = 0;
  for (const std::string& fd : host.List(folder + "/fd")) {
    if (++seen > kMaxDescriptors) {
      holdings.complete = false;
      break;
    }
    const auto target = ReadLink(host, folder + "/fd/" + fd);
    const auto channel = target ? ParseChannel(*target) : std::nullopt;
    if (!channel) continue;
    if (channel->first == "socket") {
      ++holdings.sockets[channel->second];
      continue;
    }
    const auto info = host.Read(folder + "/fdinfo/" + fd, 4096);
    const auto mode = info ? ParseAccess(*info) : std::nullopt;
    if (!mode) continue;
    Holdings::Ends& ends = holdings.pipes[channel->second];
    ends.reads = ends.reads || *mode != O_WRONLY;
    ends.writes = ends.writes || *mode != O_RDONLY;
  }
  if (const auto maps = host.Read(folder + "/maps", kMaxMapsBytes)) {
    holdings.complete = holdings.complete && maps->size() < kMaxMapsBytes;
    ParseSharedMaps(*maps, &holdings);
  }
  return holdings;
}

std::map<Link, int64_t> FindLinks(const std::map<int64_t, Holdings>& processes,
                                  const std::map<int64_t, int64_t>& parents,
                                  const std::map<uint64_t, uint64_t>& unix_peers,
                                  const std::map<uint64_t, uint64_t>& tcp_peers) {
  std::map<Link, int64_t> links;
  const auto parent_of = [&](int64_t pid) {
    const auto it = parents.find(pid);
    return it == parents.end() ? int64_t{0} : it->second;
  };
  // Adds from -> to unless both only inherited the channel from a parent that holds it too.
  const auto add = [&](int64_t from, int64_t to, const char* kind, const std::set<int64_t>& all) {
    if (from == to) return;
    const int64_t parent = parent_of(from);
    const bool siblings = parent != 0 && parent == parent_of(to);
    if (siblings && all.contains(parent)) return;
    ++links[{from, to, kind}];
  };
  std::map<uint64_t, std::set<int64_t>> pipe_readers, pipe_writers;
  std::map<uint64_t, std::set<int64_t>> socket_holders;
  std::map<std::string, std::set<int64_t>> map_holders;
  for (const auto& [pid, holdings] : processes) {
    for (const auto& [inode, ends] : holdings.pipes) {
      if (ends.reads) pipe_readers[inode].insert(pid);
      if (ends.writes) pipe_writers[inode].insert(pid);
    }
    for (const auto& [inode, count] : holdings.sockets) socket_holders[inode].insert(pid);
    for (const auto& [name, bytes] : holdings.maps) map_holders[name].insert(pid);
  }
  for (const auto& [inode, writers] : pipe_writers) {
    const auto readers = pipe_readers.find(inode);
    if (readers == pipe_readers.end()) continue;
    std::set<int64_t> all = writers;
    all.insert(readers->second.begin(), readers->second.end());
    for (const int64_t from : writers) {
      for (const int64_t to : readers->second) add(from, to, "pipe", all);
    }
  }
  for (const auto& [kind, peers] :
       {std::pair<const char*, const std::map<uint64_t, uint64_t>&>{"unix", unix_peers},
        std::pair<const char*, const std::map<uint64_t, uint64_t>&>{"tcp", tcp_peers}}) {
    for (const auto& [inode, holders] : socket_holders) {
      const auto peer = peers.find(inode);
      if (peer == peers.end()) continue;
      const auto others = socket_holders.find(peer->second);
      if (others == socket_holders.end()) continue;
      std::set<int64_t> all = holders;
      all.insert(others->second.begin(), others->second.end());
      for (const int64_t from : holders) {
        for (const int64_t to : others->second) add(from, to, kind, all);
      }
    }
  }
  for (const auto& [name, holders] : map_holders) {
    for (const int64_t from : holders) {
      for (const int64_t to : holders) add(from, to, "shm", holders);
    }
  }
  return links;
}

namespace {

class LinksProbe final : public Probe {
 public:
  Availability Start(const Host& host, const Target& target) override {
    host_ = &host;
    target_ = &target;
    const auto own = ReadHoldings(host, target.root_pid);
    if (!own) {
      const int error = errno;
      return Availability::Unavailable(
          fmt::format("/proc/{}/fd: {}", target.root_pid, std::strerror(error)),
          "the same user as the process, or CAP_SYS_PTRACE");
    }
    return Availability::Ok();
  }

  void Read(Sink& sink) override {
    std::map<int64_t, Holdings> processes;
    std::map<int64_t, int64_t> parents;
    int64_t left_out = 0;
    for (const int64_t pid : target_->pids) {
      if (processes.size() >= kMaxProcesses) {
        ++left_out;
        continue;
      }
      auto holdings = ReadHoldings(*host_, pid);
      const auto stat = ReadProcessStat(pid, host_->Path("/proc"));
      if (!holdings || !stat) continue;  // gone since the list was made, or not ours to read
      if (!holdings->complete) ++left_out;
      int64_t bytes = 0;
      for (const auto& [name, size] : holdings->maps) bytes += size;
      Measurement mapped;
      mapped.metric = "shared_memory_mapped_bytes";
      mapped.value = static_cast<double>(bytes);
      mapped.labels.pid = pid;
      sink.Add(mapped);
      parents[pid] = stat->parent_pid;
      processes.emplace(pid, std::move(*holdings));
    }
    if (left_out > most_left_out_) most_left_out_ = left_out;
    if (most_left_out_ > 0) sink.Lost("processes whose links were not read", most_left_out_, {});
    std::map<uint64_t, uint64_t> unix_peers, tcp_peers;
    if (processes.size() > 1) {
      if (host_->is_this_machine()) unix_peers = ReadUnixPeers();
      for (const char* table : {"tcp", "tcp6"}) {
        const auto text =
            host_->Read(fmt::format("/proc/{}/net/{}", target_->root_pid, table), 4 << 20);
        if (!text) continue;
        for (const auto& [one, other] : ParseTcpPeers(*text)) tcp_peers[one] = other;
      }
    }
    const auto links = FindLinks(processes, parents, unix_peers, tcp_peers);
    for (const auto& [link, count] : links) known_.insert(link);
    for (const Link& link : known_) {
      const auto it = links.find(link);
      Measurement count;
      count.metric = "link_count";
      count.value = it == links.end() ? 0.0 : static_cast<double>(it->second);
      count.labels.pid = link.from;
      count.labels.subject = fmt::format("{}>{}", link.kind, link.to);
      sink.Add(count);
    }
  }

  void Stop() override {}

 private:
  const Host* host_ = nullptr;
  const Target* target_ = nullptr;
  std::set<Link> known_;  // a link that is gone has a count of 0 from then on
  int64_t most_left_out_ = 0;
};

Availability Check(const Host& host) {
  if (host.List("/proc/self/fd").empty()) {
    return Availability::Unavailable("/proc/self/fd cannot be listed", "mount /proc");
  }
  return Availability::Ok();
}

HR_PROBE("links",
         {.summary = "pipes, sockets and shared memory between the processes of the target",
          .affects = "which process feeds which, where wake-ups are not seen",
          .level = 0,
          .period_ns = kLinkPeriodNs,
          .check = Check,
          .make = [] { return std::unique_ptr<Probe>(new LinksProbe); }});

}  // namespace
}  // namespace headrace::probes
