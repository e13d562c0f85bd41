#include "collectors/segment_claims.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <map>
#include <optional>
#include <set>

#include "base/clock.h"
#include "probes/account/account_segment.h"
#include "probes/process.h"
#include "probes/process_identity.h"

namespace headrace::collectors {
namespace {

constexpr size_t kMaxFolders = 256;
constexpr int64_t kMakingNs = 10'000'000'000;  // a segment is whole long before

// The folder of accounts here and in every other mount namespace, each once. The namespace of a
// process is entered through the process; without the right to trace it, it is not seen.
std::vector<std::string> Folders(const std::vector<int64_t>& processes) {
  const std::string own = account::AccountSegment::Folder();
  std::vector<std::string> folders = {own};
  const auto own_mounts = probes::ReadNamespace(getpid(), "mnt");
  if (!own_mounts || own[0] != '/') return folders;
  std::set<uint64_t> mounts = {*own_mounts};
  std::set<std::pair<dev_t, ino_t>> seen;
  struct stat info = {};
  if (stat(own.c_str(), &info) == 0) seen.emplace(info.st_dev, info.st_ino);
  for (const int64_t pid : processes) {
    if (folders.size() >= kMaxFolders) break;
    const auto its = probes::ReadNamespace(pid, "mnt");
    if (!its || !mounts.insert(*its).second) continue;
    std::string folder = fmt::format("/proc/{}/root{}", pid, own);
    if (stat(folder.c_str(), &info) != 0 || !S_ISDIR(info.st_mode)) continue;
    if (seen.emplace(info.st_dev, info.st_ino).second) folders.push_back(std::move(folder));
  }
  return folders;
}

// Processes by the number that they have in their own pid namespace.
class Numbers {
 public:
  explicit Numbers(const std::vector<int64_t>& processes) : processes_(processes) {}

  // 0 if there is none to be seen.
  int64_t Find(uint64_t pid_namespace, int64_t own_pid) {
    if (pid_namespace == 0 || pid_namespace == own_namespace_) return own_pid;
    if (!by_namespace_) {
      by_namespace_.emplace();
      for (const int64_t pid : processes_) {
        const auto its = probes::ReadNamespace(pid, "pid");
        if (!its || *its == own_namespace_) continue;
        if (const auto ids = probes::ReadProcessIds(pid)) {
          (*by_namespace_)[{*its, ids->own_pid}] = pid;
        }
      }
    }
    const auto found = by_namespace_->find({pid_namespace, own_pid});
    return found == by_namespace_->end() ? 0 : found->second;
  }

 private:
  const std::vector<int64_t>& processes_;
  uint64_t own_namespace_ = probes::ReadNamespace(getpid(), "pid").value_or(0);
  std::optional<std::map<std::pair<uint64_t, int64_t>, int64_t>> by_namespace_;
};

// "" if the living process `pid` stands behind the file.
std::string WhyNot(int64_t pid, int fd, const hr_header& header) {
  const auto stat = probes::ReadProcessStat(pid);
  if (!stat) return fmt::format("nothing can be read of process {}", pid);
  if (std::string refusal = WhyNotItsWord(fd, pid); !refusal.empty()) return refusal;
  const int64_t began_ns = probes::StartedMonotonicNs(stat->start_ticks);
  if (static_cast<int64_t>(header.base_monotonic_ns) < began_ns - kProcessStartErrorNs) {
    return fmt::format("older than process {}", pid);
  }
  return "";
}

// What is wrong with the file by itself. `*skip`: nothing, and it is nobody's now.
std::string WhatIsWrong(int fd, int64_t named_pid, const struct stat& file, hr_header* header,
                        bool* skip) {
  if (!S_ISREG(file.st_mode)) return "not a regular file";
  const int64_t age_ns =
      RealtimeNs() - (file.st_mtim.tv_sec * int64_t{1'000'000'000} + file.st_mtim.tv_nsec);
  const bool read = pread(fd, header, sizeof *header, 0) == sizeof *header;
  if (!read || header->state == 0) {
    *skip = age_ns < kMakingNs || !probes::IsAlive(named_pid);
    return *skip ? "" : "not whole";
  }
  if (header->magic != HR_ACCOUNT_MAGIC) return "not an instrumentation segment";
  if (header->abi_version != HR_ACCOUNT_ABI || header->segment_size != sizeof(hr_segment) ||
      file.st_size != static_cast<off_t>(sizeof(hr_segment))) {
    return fmt::format("of another version ({}), or cut", header->abi_version);
  }
  if (header->pid != named_pid) {
    return fmt::format("its name says process {}, its content {}", named_pid, header->pid);
  }
  *skip = header->state != HR_STATE_OPEN;
  return "";
}

}  // namespace

std::string WhyNotItsWord(int fd, int64_t pid, const std::optional<probes::ProcessIds>& last_ids) {
  struct stat file = {};
  if (fstat(fd, &file) != 0) return std::strerror(errno);
  if ((file.st_mode & (S_IWGRP | S_IWOTH)) != 0) return "others than its owner may write it";
  const auto mapped = probes::ReadMappedAt(pid, fd);
  auto ids = probes::ReadProcessIds(pid);
  if (!ids) ids = last_ids;
  if (!ids) return fmt::format("nothing can be read of process {}", pid);
  const bool owned = file.st_uid == ids->real_uid && file.st_uid == ids->effective_uid;
  if (!owned && !(file.st_uid == 0 && mapped.value_or(0) != 0)) {
    return fmt::format("written by user {}, process {} is user {}'s", file.st_uid, pid,
                       ids->real_uid);
  }
  if (mapped && *mapped == 0) return fmt::format("process {} does not have it open", pid);
  return "";
}

std::vector<SegmentClaim> ReadSegmentClaims(size_t* left_out) {
  size_t ignored = 0;
  size_t looked_at = 0;
  std::map<uint32_t, size_t> by_owner;
  const std::vector<int64_t> processes = probes::ListProcesses();
  Numbers numbers(processes);
  std::vector<SegmentClaim> claims;
  for (const std::string& folder : Folders(processes)) {
    for (const account::SegmentFile& file : account::AccountSegment::List(folder)) {
      struct stat info = {};
      if (lstat(file.path.c_str(), &info) != 0) continue;
      size_t& of_owner = by_owner[info.st_uid];
      if (looked_at == kMostClaims || (info.st_uid != 0 && of_owner == kMostClaims / 2)) {
        ignored++;
        continue;
      }
      looked_at++;
      of_owner++;
      SegmentClaim claim{file.path, 0, ""};
      const int fd = open(file.path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
      if (fd < 0) {
        if (errno == ENOENT) continue;
        claim.refusal = errno == ELOOP ? "a symbolic link" : std::strerror(errno);
        claims.push_back(std::move(claim));
        continue;
      }
      hr_header header = {};
      bool skip = false;
      claim.refusal = fstat(fd, &info) != 0 ? std::string(std::strerror(errno))
                                            : WhatIsWrong(fd, file.pid, info, &header, &skip);
      if (claim.refusal.empty() && !skip) {
        const int64_t pid = numbers.Find(header.pid_namespace, header.pid);
        skip = pid == 0 || !probes::IsAlive(pid);
        if (!skip) claim.refusal = WhyNot(pid, fd, header);
        if (claim.refusal.empty()) claim.pid = pid;
      }
      close(fd);
      if (!skip) claims.push_back(std::move(claim));
    }
  }
  if (left_out) *left_out = ignored;
  return claims;
}

}  // namespace headrace::collectors
