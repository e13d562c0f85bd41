// Unix stream sockets with a name in a file system: the name, whether somebody listens there, and
// the end that listens.
#pragma once
#include <sys/un.h>

#include <cstdint>
#include <string>

#include "base/error.h"

namespace headrace::reader {

// Throws Error kUsage when the path is longer than a socket's name may be.
sockaddr_un SocketName(const std::string& path);

// A stream socket without a name, closed on exec; the caller closes it. `flags`: SOCK_NONBLOCK or
// 0. Throws Error with `where` when the system makes none.
int NewSocket(const std::string& where, int flags = 0);

// Whether somebody listens at this path, or might: only a refused connection and a missing file say
// that nobody does. Never waits. Throws Error kUsage when the path is too long, another when the
// system makes no socket.
bool Listens(const std::string& path);

// Not thread-safe.
class BoundSocket {
 public:
  // Listens there, for this user alone (mode 0600). The file of one that was killed is replaced.
  // Throws `taken` when somebody listens there. Throws Error kUsage when the path is too long, or
  // is that of a file that is no socket, and another when the system refuses; these name the place
  // as `taken` does.
  BoundSocket(std::string path, const Error& taken);
  ~BoundSocket();  // removes the file, unless it is another's by now
  BoundSocket(const BoundSocket&) = delete;
  BoundSocket& operator=(const BoundSocket&) = delete;

  // For poll and accept, which do not wait.
  int fd() const { return fd_; }

 private:
  const std::string path_;
  int fd_ = -1;
  uint64_t device_ = 0, inode_ = 0;  // of the socket's file
};

}  // namespace headrace::reader
