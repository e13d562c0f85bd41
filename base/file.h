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
  // Creates a temporary file beside `path`, with permissions `mode` less the process's umask.
  // Throws Error; kUsage when `path` exists and !replace.
  AtomicFile(std::string path, bool replace, uint32_t mode = 0644);
  ~AtomicFile();  // removes the temporary file unless committed
  AtomicFile(const AtomicFile&) = delete;
  AtomicFile& operator=(const AtomicFile&) = delete;

  void Write(std::span<const uint8_t> bytes);
  void Write(std::string_view text);
  uint64_t size() const { return size_; }
  // fsync and rename. Throws Error; then `path` is as it was. Without `sync` the file is whole
  // after whatever happens to the process, but not after a crash of the machine.
  void Commit(bool sync = true);

 private:
  std::string path_, temporary_;
  int fd_ = -1;
  uint64_t size_ = 0;
};

// The whole file as text, at most `max_bytes`. Throws Error.
std::string ReadWholeFile(const std::string& path, uint64_t max_bytes = 64 << 20);

}  // namespace headrace
