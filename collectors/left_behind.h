// Segments of operator accounts that killed processes left behind. Nobody else removes them: a
// process that is killed cannot, and its number may not come again for a long time.
#pragma once
#include <sys/types.h>

#include <compare>
#include <cstdint>
#include <string>

namespace headrace::collectors {

// A file, whatever its name is.
struct FileId {
  dev_t device = 0;
  ino_t inode = 0;
  auto operator<=>(const FileId&) const = default;
};
FileId IdOf(int fd);

struct NamedFile {
  std::string path;
  FileId id;
};
// Removes the file unless its name is another's by now: a process that has got the number of a dead
// one has made a file of its own. Returns whether it did.
bool Remove(const NamedFile& file);

// Removes segments in AccountSegment::Folder() that nobody writes any more; returns how many.
//
// One of a process that was killed while making it is removed, too.
//
// A number that no process has here says little: it may be one of a container that shares the
// folder. So the kernel is asked whether any process, wherever it runs, still has the file open or
// mapped for writing (a read lease is refused then). A segment stays also when it is not ours, when
// a process of its number lives, when somebody records it, when it was made less than
// `least_age_ns` ago (a collector may be about to read its last figures), and when the kernel does
// not tell.
int RemoveLeftBehind(int64_t least_age_ns = 60'000'000'000);

}  // namespace headrace::collectors
