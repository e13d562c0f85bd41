#include "reader/pipeline/delivery/unix_socket.h"

#include <fmt/format.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

namespace headrace::reader {
namespace {

constexpr int kMostWaiting = 128;  // connections that are not accepted yet

}  // namespace

sockaddr_un SocketName(const std::string& path) {
  sockaddr_un name = {};
  name.sun_family = AF_UNIX;
  constexpr size_t kMost = sizeof name.sun_path - 1;
  if (path.size() > kMost)
    throw Error(
        ExitCode::kUsage,
        fmt::format("the path of a socket has at most {} bytes, not {}", kMost, path.size()), path,
        "choose a shorter one");
  std::memcpy(name.sun_path, path.data(), path.size());
  return name;
}

int NewSocket(const std::string& where, int flags) {
  const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | flags, 0);
  if (fd < 0) throw ErrnoError(errno, "make a socket for", where);
  return fd;
}

bool Listens(const std::string& path) {
  const sockaddr_un name = SocketName(path);
  const int probe = NewSocket(path, SOCK_NONBLOCK);
  const bool listens = connect(probe, reinterpret_cast<const sockaddr*>(&name), sizeof name) == 0 ||
                       (errno != ECONNREFUSED && errno != ENOENT);
  close(probe);
  return listens;
}

BoundSocket::BoundSocket(std::string path, const Error& taken) : path_(std::move(path)) {
  const sockaddr_un name = SocketName(path_);
  struct stat status = {};
  if (lstat(path_.c_str(), &status) == 0) {
    if (!S_ISSOCK(status.st_mode))
      throw Error(ExitCode::kUsage, "there is a file of that name, and it is not a socket",
                  taken.where(), "choose another path");
    if (Listens(path_)) throw Error(taken);
    unlink(path_.c_str());  // of one that was killed
  }
  fd_ = NewSocket(taken.where(), SOCK_NONBLOCK);
  const mode_t mask = umask(0177);
  const int bound = bind(fd_, reinterpret_cast<const sockaddr*>(&name), sizeof name);
  int error = bound == 0 ? 0 : errno;
  umask(mask);
  if (bound == 0 && (listen(fd_, kMostWaiting) != 0 || stat(path_.c_str(), &status) != 0))
    error = errno;
  if (error != 0) {
    close(fd_);
    if (error == EADDRINUSE) throw Error(taken);
    throw ErrnoError(error, "listen at", taken.where());
  }
  device_ = status.st_dev;
  inode_ = status.st_ino;
}

BoundSocket::~BoundSocket() {
  struct stat status = {};
  if (stat(path_.c_str(), &status) == 0 && status.st_dev == device_ && status.st_ino == inode_)
    unlink(path_.c_str());
  close(fd_);
}

}  // namespace headrace::reader
