#include "collectors/recorded_mark.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

namespace headrace::collectors {
namespace {

// -1 for what is no regular file: the name is anybody's to take, and a pipe would be waited at.
int OpenRegular(const std::string& path) {
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
  struct stat info = {};
  if (fd < 0 || (fstat(fd, &info) == 0 && S_ISREG(info.st_mode))) return fd;
  close(fd);
  return -1;
}

}  // namespace

RecordedMark::RecordedMark(const std::string& path) : fd_(OpenRegular(path)) {
  if (fd_ >= 0) flock(fd_, LOCK_SH | LOCK_NB);
}

RecordedMark::RecordedMark(RecordedMark&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}

RecordedMark& RecordedMark::operator=(RecordedMark&& other) noexcept {
  std::swap(fd_, other.fd_);
  return *this;
}

RecordedMark::~RecordedMark() {
  if (fd_ >= 0) close(fd_);
}

bool IsBeingRecorded(const std::string& path) {
  const int fd = OpenRegular(path);
  if (fd < 0) return false;
  const bool recorded = flock(fd, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK;
  close(fd);
  return recorded;
}

}  // namespace headrace::collectors
