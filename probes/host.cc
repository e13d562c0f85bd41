#include "probes/host.h"

#include <dirent.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstdlib>

namespace headrace::probes {

Host::Host(std::string root) : root_(std::move(root)) {
  while (!root_.empty() && root_.back() == '/') root_.pop_back();
}

std::optional<std::string> Host::Read(const std::string& path, size_t limit) const {
  const int fd = open(Path(path).c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0) return std::nullopt;
  std::string text;
  while (text.size() < limit) {
    char buffer[8192];
    const ssize_t n = read(fd, buffer, std::min(sizeof buffer, limit - text.size()));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) {
      const int error = errno;
      close(fd);
      errno = error;
      return std::nullopt;
    }
    if (n == 0) break;
    text.append(buffer, static_cast<size_t>(n));
  }
  close(fd);
  return text;
}

std::vector<std::string> Host::List(const std::string& path) const {
  std::vector<std::string> names;
  DIR* folder = opendir(Path(path).c_str());
  if (!folder) return names;
  while (const dirent* entry = readdir(folder)) {
    const std::string name = entry->d_name;
    if (name != "." && name != "..") names.push_back(name);
  }
  closedir(folder);
  std::sort(names.begin(), names.end());
  return names;
}

std::optional<int64_t> Host::ReadInteger(const std::string& path) const {
  const auto text = Read(path, 64);
  if (!text) return std::nullopt;
  int64_t value = 0;
  const auto result = std::from_chars(text->data(), text->data() + text->size(), value);
  if (result.ec != std::errc()) {
    errno = EINVAL;
    return std::nullopt;
  }
  return value;
}

std::optional<bool> Host::HasCapability(int capability) const {
  const auto status = Read("/proc/self/status");
  const size_t at = status ? status->find("CapEff:") : std::string::npos;
  if (at == std::string::npos) return std::nullopt;
  const uint64_t set = std::strtoull(status->c_str() + at + 7, nullptr, 16);
  const bool admin_counts = capability == CAP_BPF || capability == CAP_PERFMON;
  return (set >> capability & 1) != 0 || (admin_counts && (set >> CAP_SYS_ADMIN & 1) != 0);
}

}  // namespace headrace::probes
