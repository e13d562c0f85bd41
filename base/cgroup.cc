#include "base/cgroup.h"

#include <algorithm>
#include <sstream>

#include "base/ascii.h"

namespace headrace {
namespace {

// True if `word` is one of the comma-separated words of `list`.
bool Contains(std::string_view list, std::string_view word) {
  while (true) {
    const size_t comma = list.find(',');
    if (list.substr(0, comma) == word) return true;
    if (comma == std::string_view::npos) return false;
    list.remove_prefix(comma + 1);
  }
}

std::vector<std::string> Words(std::string_view line) {
  std::istringstream in{std::string(line)};
  std::vector<std::string> words;
  for (std::string word; in >> word;) words.push_back(word);
  return words;
}

}  // namespace

// A line of mountinfo: "31 23 0:28 ROOT POINT options [fields] - TYPE SOURCE SUPER_OPTIONS".
CgroupMounts::CgroupMounts(std::string_view mountinfo) {
  for (std::string_view line; NextLine(&mountinfo, &line);) {
    const size_t dash = line.find(" - cgroup");
    if (dash == std::string_view::npos) continue;
    const auto left = Words(line.substr(0, dash)), right = Words(line.substr(dash + 3));
    if (left.size() < 5 || right.size() < 3) continue;
    mounts_.push_back({right[0] == "cgroup2", right[2], left[3], left[4]});
  }
}

std::optional<std::string_view> CgroupPath(std::string_view cgroup_text,
                                           std::string_view controller) {
  for (std::string_view line; NextLine(&cgroup_text, &line);) {  // "4:memory:/pipeline"
    const size_t first = line.find(':');
    const size_t second = first == std::string_view::npos ? first : line.find(':', first + 1);
    if (second == std::string_view::npos) continue;
    const std::string_view controllers = line.substr(first + 1, second - first - 1);
    if (controller.empty() ? !controllers.empty() : !Contains(controllers, controller)) continue;
    return line.substr(second + 1);
  }
  return std::nullopt;
}

std::optional<Cgroup> CgroupMounts::Find(std::string_view cgroup_text,
                                         std::string_view controller) const {
  const std::optional<std::string_view> path = CgroupPath(cgroup_text, controller);
  if (!path) return std::nullopt;
  const auto mount = std::find_if(mounts_.begin(), mounts_.end(), [&](const Mount& m) {
    return controller.empty() ? m.unified : !m.unified && Contains(m.controllers, controller);
  });
  if (mount == mounts_.end()) return std::nullopt;
  Cgroup group{std::string(*path), mount->point, mount->point};
  // In a container the mount may show only a part of the hierarchy, from its own root on.
  std::string_view below = group.name;
  if (below.find("/..") != std::string_view::npos) return group;  // above what we can see
  if (mount->root != "/") {
    if (!below.starts_with(mount->root)) return group;
    below.remove_prefix(mount->root.size());
    if (!below.empty() && below.front() != '/') return group;  // another one's longer name
  }
  if (below != "/") group.folder += below;
  return group;
}

std::optional<Cgroup> Parent(const Cgroup& cgroup) {
  if (cgroup.folder.size() <= cgroup.mount.size()) return std::nullopt;
  Cgroup parent = cgroup;
  parent.folder.resize(parent.folder.rfind('/'));
  const size_t slash = parent.name.rfind('/');
  parent.name.resize(slash == std::string::npos ? 0 : std::max<size_t>(slash, 1));
  return parent;
}

}  // namespace headrace
