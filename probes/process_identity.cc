#include "probes/process_identity.h"

#include <dirent.h>
#include <fmt/format.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <memory>

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

std::optional<uint64_t> ReadMappedAt(int64_t pid, uint64_t inode, const std::string& root) {
  const std::unique_ptr<FILE, int (*)(FILE*)> maps(
      std::fopen(fmt::format("{}/{}/maps", root, pid).c_str(), "re"), std::fclose);
  if (!maps) return std::nullopt;
  char line[4608];
  while (std::fgets(line, sizeof line, maps.get())) {
    unsigned long long begin, offset, number;
    if (std::sscanf(line, "%llx-%*x %*s %llx %*s %llu", &begin, &offset, &number) == 3 &&
        number == inode && offset == 0) {
      return begin;
    }
  }
  return std::ferror(maps.get()) ? std::nullopt : std::optional<uint64_t>(0);
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
