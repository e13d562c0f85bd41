#include "collectors/segment_search.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "base/clock.h"
#include "base/error.h"
#include "base/units.h"
#include "probes/account/account.h"
#include "probes/process_identity.h"

namespace headrace::collectors {
namespace {

constexpr int64_t kNamespacesNs = 5'000'000'000;  // a process may enter other namespaces as it runs
// What a program needs of the folder to open its accounts and to give one thread its place.
constexpr uint64_t kLeastBytes = offsetof(hr_segment, slots) + sizeof(hr_slot);

enum class Content { kAbsent, kBeingMade, kUnreadable, kDamaged, kWhole };

Content ContentOf(const std::string& path, hr_header* header) {
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
  if (fd < 0) {
    return errno == ENOENT || errno == ENOTDIR ? Content::kAbsent : Content::kUnreadable;
  }
  struct stat info = {};
  const bool regular = fstat(fd, &info) == 0 && S_ISREG(info.st_mode);
  const ssize_t n = regular ? pread(fd, header, sizeof *header, 0) : -1;
  close(fd);
  if (n == 0) return Content::kBeingMade;
  if (n != sizeof *header) return Content::kDamaged;
  if (header->state == 0) return Content::kBeingMade;
  return header->magic == HR_ACCOUNT_MAGIC ? Content::kWhole : Content::kDamaged;
}

}  // namespace

void SegmentSearch::FindPlaces() {
  const auto ids = probes::ReadProcessIds(pid_);
  if (!ids && own_pid_ != 0) return;  // it has ended: what was known stays
  ids_ = ids;
  own_pid_ = ids ? ids->own_pid : pid_;
  pid_namespace_ = probes::ReadNamespace(pid_, "pid").value_or(0);
  const auto mounts = probes::ReadNamespace(pid_, "mnt");
  char its_root[8] = "";
  const std::string root = fmt::format("/proc/{}/root", pid_);
  const ssize_t n = readlink(root.c_str(), its_root, sizeof its_root - 1);
  const bool same_files = mounts == probes::ReadNamespace(getpid(), "mnt") && n == 1;
  const std::string own = account::AccountSegment::Folder();
  own_name_ = probes::ReadEnvironment(pid_, "HEADRACE_ACCOUNT_DIR").value_or("");
  if (own_name_.empty() || own_name_[0] != '/') own_name_ = own;
  own_folder_ = (same_files || !mounts || own_name_[0] != '/' ? "" : root) + own_name_;
  paths_.clear();
  for (const std::string& folder : {own, own_folder_, root + own}) {
    if (folder == root + own && (same_files || !mounts || own[0] != '/')) continue;
    for (const std::string& path :
         {fmt::format("{}/headrace.{}", folder, own_pid_),
          fmt::format("{}/headrace.{}.{}", folder, own_pid_, pid_namespace_)}) {
      if (std::find(paths_.begin(), paths_.end(), path) == paths_.end()) paths_.push_back(path);
    }
  }
}

std::string SegmentSearch::Find() {
  std::string faulty;
  const std::string whole = Look(&faulty);
  return whole.empty() ? faulty : whole;
}

std::string SegmentSearch::Look(std::string* faulty) {
  const int64_t now = MonotonicNs();
  if (now >= next_look_ns_) {
    next_look_ns_ = now + kNamespacesNs;
    FindPlaces();
  }
  for (const std::string& path : paths_) {
    hr_header header = {};
    const Content content = ContentOf(path, &header);
    if (content == Content::kUnreadable || content == Content::kDamaged) {
      if (faulty && faulty->empty()) *faulty = path;
    } else if (content == Content::kWhole && IsIts(header)) {
      return path;
    }
  }
  return "";
}

bool SegmentSearch::IsIts(const hr_header& header) const {
  const bool same_namespace =
      header.pid_namespace == 0 || pid_namespace_ == 0 || header.pid_namespace == pid_namespace_;
  return header.pid == own_pid_ && same_namespace;
}

SegmentSearch::Obstacle SegmentSearch::FindObstacle() {
  FindPlaces();
  if (probes::ReadEnvironment(pid_, "HEADRACE_ACCOUNTS") == "off") {
    return {"HEADRACE_ACCOUNTS=off is in its environment", "start it without that"};
  }
  const std::string name = Printable(own_name_, 200);
  const std::string elsewhere = "or set HEADRACE_ACCOUNT_DIR to a folder that it may write";
  struct stat folder = {};
  struct statvfs disk = {};
  if (stat(own_folder_.c_str(), &folder) != 0) {
    if (errno != ENOENT && errno != ENOTDIR) return {};
    return {fmt::format("it has no {}", name), fmt::format("mount a tmpfs there, {}", elsewhere)};
  }
  if (statvfs(own_folder_.c_str(), &disk) != 0) return {};
  if (disk.f_flag & ST_RDONLY) {
    return {fmt::format("its {} is read-only", name),
            fmt::format("mount a tmpfs there, {}", elsewhere)};
  }
  const auto ids = probes::ReadProcessIds(pid_);
  const uint32_t user = ids ? ids->effective_uid : 0;
  const unsigned may_write = folder.st_uid == user ? S_IWUSR : S_IWGRP | S_IWOTH;
  if (user != 0 && (folder.st_mode & may_write) == 0) {
    return {fmt::format("its user {} may not write {}", user, name),
            fmt::format("chmod 1777 {}, {}", name, elsewhere)};
  }
  const uint64_t free_bytes = uint64_t{disk.f_bavail} * disk.f_frsize;
  if (disk.f_blocks > 0 && free_bytes < kLeastBytes) {
    return {fmt::format("its {} is full: {} free, the instrumentation needs {}", name,
                        FormatBytes(static_cast<double>(free_bytes)),
                        FormatBytes(static_cast<double>(kLeastBytes))),
            fmt::format("make room (docker: --shm-size 64m), {}", elsewhere)};
  }
  for (const std::string& path : paths_) {
    hr_header header = {};
    const Content content = ContentOf(path, &header);
    if (content == Content::kAbsent || content == Content::kBeingMade) return {};
    if (content == Content::kWhole && IsIts(header)) return {};
  }
  return {
      fmt::format("files of others have both names that its instrumentation may have in {}", name),
      fmt::format("remove {}, {}", paths_.at(0), elsewhere)};
}

}  // namespace headrace::collectors
