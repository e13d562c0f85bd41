// Links between the processes of a tree, from /proc: pipes, sockets and shared memory, and who
// holds their ends. They say who can feed whom; who does is said by wake-ups (probes/bpf).
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

// What a process holds of channels and of memory shared by name.
struct Holdings {
  struct Ends {
    bool reads = false, writes = false;
  };
  std::map<uint64_t, Ends> pipes;       // by inode
  std::map<uint64_t, int> sockets;      // by inode; descriptors
  std::map<std::string, int64_t> maps;  // shared mappings by name and inode; bytes mapped
  bool complete = true;  // false: some descriptors or mappings were not looked at (limits below)
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

// Who can send to whom. Two children of one parent that holds the same channel have inherited it:
// they are linked to the parent only. `parents`: pid -> parent. `peers`: sockets by inode. The
// count is that of channels (for "shm": of shared segments).
std::map<Link, int64_t> FindLinks(const std::map<int64_t, Holdings>& processes,
                                  const std::map<int64_t, int64_t>& parents,
                                  const std::map<uint64_t, uint64_t>& unix_peers,
                                  const std::map<uint64_t, uint64_t>& tcp_peers);

}  // namespace headrace::probes
