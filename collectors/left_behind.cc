#include "collectors/left_behind.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <string>

#include "base/clock.h"
#include "probes/account/account_segment.h"
#include "probes/process.h"
#include "probes/process_identity.h"

namespace headrace::collectors {
namespace {

// Whether the file is a segment of a process of that number, or what one left that was killed while
// making it: nothing, or zeros. Any other content is somebody's.
bool IsOurs(int fd, const struct stat& info, int64_t pid, hr_header* header) {
  if (info.st_size == 0) return true;
  const ssize_t n = pread(fd, header, sizeof *header, 0);
  if (n != sizeof *header) return false;
  if (header->magic == HR_ACCOUNT_MAGIC &&
      (static_cast<int64_t>(header->pid) == pid || header->pid == 0)) {
    return true;
  }
  const auto* bytes = reinterpret_cast<const unsigned char*>(header);
  return info.st_size == sizeof(hr_segment) &&
         std::all_of(bytes, bytes + offsetof(hr_header, reserved2),
                     [](unsigned char byte) { return byte == 0; });
}

// True if no process has the file open or mapped for writing. False also where that is not told:
// another user's file without CAP_LEASE, a file system without leases.
bool NobodyWrites(int fd) {
  // Somebody who opens it in this moment would have the kernel send us a signal that kills.
  if (fcntl(fd, F_SETSIG, SIGURG) != 0) return false;
  if (fcntl(fd, F_SETLEASE, F_RDLCK) != 0) return false;
  fcntl(fd, F_SETLEASE, F_UNLCK);
  return true;
}

bool IsLeftBehind(int fd, int64_t pid, int64_t least_age_ns) {
  struct stat info = {};
  if (fstat(fd, &info) != 0 || !S_ISREG(info.st_mode)) return false;
  if (info.st_uid != geteuid() && geteuid() != 0) return false;
  const int64_t made_ns = info.st_mtim.tv_sec * int64_t{1'000'000'000} + info.st_mtim.tv_nsec;
  if (RealtimeNs() - made_ns < least_age_ns) return false;
  hr_header header = {};
  if (!IsOurs(fd, info, pid, &header)) return false;
  // In another pid namespace the number says nothing here.
  const auto own_namespace = probes::ReadNamespace(getpid(), "pid");
  const bool foreign = header.pid_namespace != 0 && own_namespace.value_or(0) != 0 &&
                       header.pid_namespace != *own_namespace;
  if (!foreign && probes::IsAlive(pid)) return false;
  if (flock(fd, LOCK_EX | LOCK_NB) != 0) return false;  // recorded
  return NobodyWrites(fd);
}

}  // namespace

FileId IdOf(int fd) {
  struct stat info = {};
  return fstat(fd, &info) == 0 ? FileId{info.st_dev, info.st_ino} : FileId{};
}

bool Remove(const NamedFile& file) {
  struct stat now = {};
  return lstat(file.path.c_str(), &now) == 0 && FileId{now.st_dev, now.st_ino} == file.id &&
         unlink(file.path.c_str()) == 0;
}

int RemoveLeftBehind(int64_t least_age_ns) {
  int removed = 0;
  for (const auto& [path, pid] : account::AccountSegment::List(account::AccountSegment::Folder())) {
    const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (fd < 0) continue;
    if (IsLeftBehind(fd, pid, least_age_ns) && Remove({path, IdOf(fd)})) removed++;
    close(fd);
  }
  return removed;
}

}  // namespace headrace::collectors
