// Where a process's control groups are mounted, for cgroup v1, v2 and both at once.
#pragma once
#include <cstdint>
#include <optional>
#include <string>

#include "probes/host.h"

namespace headrace::probes {

struct Cgroup {
  std::string name;    // as /proc/PID/cgroup calls it: "/", "/pipeline"
  std::string mount;   // "/sys/fs/cgroup/memory"
  std::string folder;  // its folder below the root: mount + name; the mount itself at the top
};

// The unified (v2) group of a process, or the v1 group in `controller`'s hierarchy ("memory").
// Nothing if the process is not in one, or it is not mounted here; errno then says why.
std::optional<Cgroup> FindCgroup(const Host& host, int64_t pid, const std::string& controller);
inline std::optional<Cgroup> FindUnifiedCgroup(const Host& host, int64_t pid) {
  return FindCgroup(host, pid, "");
}
// The group above; nothing at the mount.
std::optional<Cgroup> Parent(const Cgroup& cgroup);

}  // namespace headrace::probes
