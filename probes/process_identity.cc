#include "probes/process_identity.h"

#include <dirent.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <utility>

#include "probes/host.h"

namespace headrace::probes {
namespace {

// What follows `key` on its line of a status file; empty if it has none.
std::string LineOf(const std::string& status, const std::string& key) {
  const size_t at = ("\n" + status).find("\n" + key + ":");
  if (at == std::string::npos) return "";
  const size_t begin = at + key.size() + 1;
  return status.substr(begin, status.find('\n', begin) - begin);
}

// The lines of a maps file.
class Maps {
 public:
  explicit Maps(const std::string& path) : file_(std::fopen(path.c_str(), "re"), Close) {}
  struct Mapping {
    uint64_t begin = 0, offset = 0, inode = 0;
    std::pair<unsigned, unsigned> device;
  };
  // Absent at the end, and where it cannot be read.
  std::optional<Mapping> Next() {
    char line[4608];
    while (file_ && std::fgets(line, sizeof line, file_.get())) {
      unsigned long long begin, offset, inode;
      unsigned major, minor;
      if (std::sscanf(line, "%llx-%*x %*s %llx %x:%x %llu", &begin, &offset, &major, &minor,
                      &inode) == 5) {
        return Mapping{begin, offset, inode, {major, minor}};
      }
    }
    return std::nullopt;
  }
  bool failed() const { return !file_ || std::ferror(file_.get()); }

 private:
  static void Close(FILE* file) { std::fclose(file); }
  std::unique_ptr<FILE, void (*)(FILE*)> file_;
};

int64_t BootOffsetNs() {
  timespec boot{}, monotonic{};
  clock_gettime(CLOCK_BOOTTIME, &boot);
  clock_gettime(CLOCK_MONOTONIC, &monotonic);
  return (boot.tv_sec - monotonic.tv_sec) * int64_t{1'000'000'000} + boot.tv_nsec -
         monotonic.tv_nsec;
}

}  // namespace

std::optional<ProcessIds> ReadProcessIds(int64_t pid, const std::string& root) {
  const auto status = Host().Read(fmt::format("{}/{}/status", root, pid));
  if (!status) return std::nullopt;
  ProcessIds ids;
  if (std::sscanf(LineOf(*status, "Uid").c_str(), " %u %u", &ids.real_uid, &ids.effective_uid) !=
      2) {
    return std::nullopt;
  }
  ids.own_pid = pid;
  const std::string numbers = LineOf(*status, "NSpid");  // the innermost is last; Linux 4.1
  if (const size_t last = numbers.find_last_of(" \t"); last != std::string::npos) {
    const long long number = std::strtoll(numbers.c_str() + last, nullptr, 10);
    if (number > 0) ids.own_pid = number;
  }
  return ids;
}

std::map<int64_t, int64_t> ReadOwnTids(int64_t pid, const std::string& root) {
  std::map<int64_t, int64_t> tids;
  const std::string tasks = fmt::format("{}/{}/task", root, pid);
  for (const int64_t tid : ListProcesses(tasks)) {
    if (const auto ids = ReadProcessIds(tid, tasks)) tids[ids->own_pid] = tid;
  }
  return tids;
}

std::optional<uint64_t> ReadNamespace(int64_t pid, const std::string& kind,
                                      const std::string& root) {
  char text[64];
  const ssize_t n =
      readlink(fmt::format("{}/{}/ns/{}", root, pid, kind).c_str(), text, sizeof text - 1);
  if (n <= 0) return std::nullopt;
  text[n] = 0;
  unsigned long long inode;
  if (std::sscanf(text, "%*[^:]:[%llu]", &inode) != 1) return std::nullopt;
  return inode;
}

std::optional<std::string> ReadEnvironment(int64_t pid, const std::string& name,
                                           const std::string& root) {
  const auto text = Host().Read(fmt::format("{}/{}/environ", root, pid));
  if (!text) return std::nullopt;
  const std::string wanted = name + "=";
  for (size_t at = 0; at < text->size();) {
    const size_t end = std::min(text->find('\0', at), text->size());
    if (text->compare(at, wanted.size(), wanted) == 0) {
      return text->substr(at + wanted.size(), end - at - wanted.size());
    }
    at = end + 1;
  }
  return std::nullopt;
}

std::optional<uint64_t> ReadMappedAt(int64_t pid, int fd, const std::string& root) {
  Maps theirs(fmt::format("{}/{}/maps", root, pid));
  auto mapping = theirs.Next();
  if (!mapping) return std::nullopt;
  // Mapped here as well: what maps calls its device, fstat may call otherwise (overlayfs, btrfs).
  constexpr size_t kLength = 1;
  void* const here = mmap(nullptr, kLength, PROT_NONE, MAP_SHARED, fd, 0);
  if (here == MAP_FAILED) return std::nullopt;
  Maps ours("/proc/self/maps");
  auto own = ours.Next();
  while (own && own->begin != reinterpret_cast<uintptr_t>(here)) own = ours.Next();
  munmap(here, kLength);
  if (!own) return std::nullopt;
  for (; mapping; mapping = theirs.Next()) {
    if (mapping->offset == 0 && mapping->device == own->device && mapping->inode == own->inode) {
      return mapping->begin;
    }
  }
  return theirs.failed() ? std::nullopt : std::optional<uint64_t>(0);
}

bool IgnoresSignal(int64_t pid, int number, const std::string& root) {
  const auto status = Host().Read(fmt::format("{}/{}/status", root, pid));
  unsigned long long ignored = 0;
  if (!status || std::sscanf(LineOf(*status, "SigIgn").c_str(), " %llx", &ignored) != 1)
    return false;
  return (ignored >> (number - 1) & 1) != 0;
}

int64_t StartedMonotonicNs(int64_t start_ticks) {
  static const int64_t tick_ns = 1'000'000'000 / sysconf(_SC_CLK_TCK);
  return start_ticks * tick_ns - BootOffsetNs();
}

std::vector<int64_t> ListProcesses(const std::string& root) {
  std::vector<int64_t> pids;
  DIR* dir = opendir(root.c_str());
  if (!dir) return pids;
  while (const dirent* entry = readdir(dir)) {
    char* end;
    const long long pid = std::strtoll(entry->d_name, &end, 10);
    if (end != entry->d_name && *end == 0 && pid > 0) pids.push_back(pid);
  }
  closedir(dir);
  std::sort(pids.begin(), pids.end());
  return pids;
}

}  // namespace headrace::probes
