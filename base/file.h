// File: a RAII descriptor read at offsets. AtomicFile: an output that appears complete, by rename,
// or not at all.
#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace headrace {

class File {
 public:
  // Opens an existing regular file for reading. Throws Error (ErrnoError; kBadData for a
  // directory).
  explicit File(const std::string& path);
  ~File();
  File(File&& other) noexcept;
  File& operator=(File&& other) noexcept;

  const std::string& path() const { return path_; }
  int descriptor() const { return fd_; }
  uint64_t size() const { return size_; }  // at open
  // Fills `out` from `offset`; throws Error kBadData when the file ends before (it shrank after it
  // was opened).
  void ReadAt(uint64_t offset, std::span<uint8_t> out) const;

 private:
  std::string path_;
  int fd_ = -1;
  uint64_t size_ = 0;
};

class AtomicFile {
 public:
  static constexpr uint32_t kUsual = 0666;

  // Creates a temporary file beside `path` (base/temporary.h), with permissions `mode` less the
  // process's umask; with kUsual a file of this user that it replaces keeps its own. A pipe, a
  // device, and names of an open descriptor (/dev/stdout, /dev/fd/3) are written directly, as
  // nothing can be renamed to them. Throws Error; kUsage when `path` exists and !replace,
  // kPrivilege for a link that is neither this user's nor root's.
  AtomicFile(std::string path, bool replace, uint32_t mode = kUsual);
  ~AtomicFile();  // removes the temporary file unless committed
  AtomicFile(const AtomicFile&) = delete;
  AtomicFile& operator=(const AtomicFile&) = delete;

  // Throws the Error that the constructor would, and leaves nothing.
  static void Check(const std::string& path, bool replace);

  void Write(std::span<const uint8_t> bytes);
  void Write(std::string_view text);
  uint64_t size() const { return size_; }
  // fsync, rename, and fsync of the folder. Throws Error; then `path` is as it was, unless it was
  // the folder that failed. Without `sync` the file is whole after whatever happens to the process,
  // but not after a crash of the machine.
  void Commit(bool sync = true);

 private:
  void Create(uint32_t mode);
  void Rename();

  std::string path_, name_, temporary_;  // the last two without their folder
  bool replace_;
  int folder_ = -1;
  int fd_ = -1;
  uint64_t size_ = 0;
};

// Opens a file that grows in place, such as a log, for writing; creates it with permissions 0666
// less the umask if there is none. `flags`: O_APPEND or 0. Links in its place are followed only
// where they belong to this user or to root. The caller closes the descriptor. Throws Error, also
// at once for a pipe that nobody reads.
int OpenGrowingFile(const std::string& path, int flags = 0);

// The whole file as text, at most `max_bytes`. Throws Error.
std::string ReadWholeFile(const std::string& path, uint64_t max_bytes = 64 << 20);

}  // namespace headrace
