// Segments of operator accounts that killed processes left behind. Nobody else removes them: a
// process that is killed cannot, and its number may not come again for a long time.
#pragma once
#include <sys/types.h>

#include <compare>
#include <cstdint>
#include <string>

namespace headrace::collectors {

// Identifies a file independently of its name.
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
// Removes the file unless its name now belongs to another file: a new process with the same pid may
// have made its own. Returns whether the file was removed.
bool Remove(const NamedFile& file);

// Removes segments in AccountSegment::Folder() that nobody writes any more; returns how many.
//
// A segment whose process was killed while making it is removed, too.
//
// That no process here has the segment's pid proves little: the process may run in a container that
// shares the folder. So the kernel is asked whether any process, wherever it runs, still has the
// file open or mapped for writing (then it refuses a read lease). A segment also stays when it is
// not ours, when a process with its pid lives, when somebody records it, when it was made less than
// `least_age_ns` ago (a collector may be about to read its last figures), and when the kernel gives
// no answer.
int RemoveLeftBehind(int64_t least_age_ns = 60'000'000'000);

}  // namespace headrace::collectors
