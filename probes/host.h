// Host: where a probe looks at the machine. `root` replaces "/" (a fixture in tests), so that every
// reader of /proc and /sys is tested on machines we do not have.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace headrace::probes {

class Host {
 public:
  // "" is this machine. Does not touch the file system.
  explicit Host(std::string root = "");

  const std::string& root() const { return root_; }
  // False for a fixture: then the files may not be combined with system calls.
  bool is_this_machine() const { return root_.empty(); }
  // `path` ("/proc/stat") below the root.
  std::string Path(const std::string& path) const { return root_ + path; }

  // Contents of a file, at most `limit` bytes of it; nothing, with errno set, if it cannot be read.
  std::optional<std::string> Read(const std::string& path, size_t limit = 1 << 20) const;
  // Names in a folder, sorted; empty if it cannot be read.
  std::vector<std::string> List(const std::string& path) const;
  // The first number in a file, if it begins with one.
  std::optional<int64_t> ReadInteger(const std::string& path) const;

  // Whether this process has a capability (CAP_*, or CAP_SYS_ADMIN in its place for CAP_BPF and
  // CAP_PERFMON), from /proc/self/status; nothing, with errno, where that cannot be read.
  std::optional<bool> HasCapability(int capability) const;

 private:
  std::string root_;
};

}  // namespace headrace::probes
