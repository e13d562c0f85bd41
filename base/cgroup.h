// Where a process's control groups are mounted, for cgroup v1, v2 and both at once.
#pragma once
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace headrace {

struct Cgroup {
  std::string name;    // as /proc/PID/cgroup calls it: "/", "/pipeline"
  std::string mount;   // "/sys/fs/cgroup/memory"
  std::string folder;  // its folder below the root: mount + name; the mount itself at the top
};

// The group's path in `controller`'s v1 hierarchy ("memory"), or with "" in the unified (v2) one,
// out of the contents of a /proc/PID/cgroup. Nothing if the process is in none.
std::optional<std::string_view> CgroupPath(std::string_view cgroup_text,
                                           std::string_view controller);

// The mounted hierarchies.
class CgroupMounts {
 public:
  CgroupMounts() = default;
  // Out of the contents of /proc/self/mountinfo.
  explicit CgroupMounts(std::string_view mountinfo);
  // The group of CgroupPath. Nothing if the process is in none or it is not mounted.
  std::optional<Cgroup> Find(std::string_view cgroup_text, std::string_view controller) const;

 private:
  struct Mount {
    bool unified = false;
    std::string controllers, root, point;
  };
  std::vector<Mount> mounts_;
};

// The group above; nothing at the mount.
std::optional<Cgroup> Parent(const Cgroup& cgroup);

}  // namespace headrace
