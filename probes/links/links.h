// Links between the processes of a tree, from /proc: pipes, sockets and shared memory, and who
// holds their ends. They show which process can feed which; wake-ups (probes/bpf) show which one
// does.
#pragma once
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "probes/host.h"

namespace headrace::probes {

// The channels and the memory shared by name that a process holds.
struct Holdings {
  struct Ends {
    bool reads = false, writes = false;
  };
  std::map<uint64_t, Ends> pipes;       // by inode
  std::map<uint64_t, int> sockets;      // by inode; descriptors
  std::map<std::string, int64_t> maps;  // shared mappings by name and inode; bytes mapped
  bool complete = true;  // false: some descriptors or mappings were left out (limits below)
};

// One direction of a connection: `from` can send to `to`.
struct Link {
  int64_t from = 0, to = 0;
  std::string kind;  // "pipe", "unix", "tcp", "shm"
  auto operator<=>(const Link&) const = default;
};

// "pipe:[123]" -> {"pipe", 123}; nothing for any other target of a descriptor.
std::optional<std::pair<std::string, uint64_t>> ParseChannel(std::string_view target);
// The access mode (0 read, 1 write, 2 both) of a descriptor from its fdinfo.
std::optional<int> ParseAccess(std::string_view fdinfo);
// Adds the named shared mappings in the text of /proc/PID/maps; lines it cannot parse are skipped.
void ParseSharedMaps(std::string_view maps, Holdings* holdings);
// Pairs of socket inodes that are each other's peers on this machine, from /proc/net/tcp or tcp6.
std::vector<std::pair<uint64_t, uint64_t>> ParseTcpPeers(std::string_view table);

// Nothing if the process is gone or may not be read. At most `kMaxDescriptors` descriptors.
inline constexpr size_t kMaxDescriptors = 4096;
std::optional<Holdings> ReadHoldings(const Host& host, int64_t pid);

// Which process can send to which, with the number of channels (for "shm": of shared segments). If
// two children and their parent hold the same channel, the children have inherited it and are
// linked to the parent only. `parents`: pid -> parent. `unix_peers`, `tcp_peers`: socket inode ->
// peer's inode.
std::map<Link, int64_t> FindLinks(const std::map<int64_t, Holdings>& processes,
                                  const std::map<int64_t, int64_t>& parents,
                                  const std::map<uint64_t, uint64_t>& unix_peers,
                                  const std::map<uint64_t, uint64_t>& tcp_peers);

}  // namespace headrace::probes
