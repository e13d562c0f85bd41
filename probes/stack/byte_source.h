// ByteSource: bytes of an untrusted file, read at offsets and never mapped, so that a file which
// shrinks or is replaced while it is read makes a read fail, but causes no signal.
#pragma once
#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

namespace headrace::probes::stack {

class ByteSource {
 public:
  virtual ~ByteSource() = default;
  virtual uint64_t size() const = 0;
  // Fills `out` from `offset`; false, with `out` undefined, if not all bytes are there.
  virtual bool Read(uint64_t offset, void* out, size_t size) const = 0;

  template <typename T>
  bool ReadValue(uint64_t offset, T* out) const {
    return Read(offset, out, sizeof(T));
  }
  // The text at `offset` up to its NUL, at most `limit` bytes of it; "" if there is none.
  std::string ReadText(uint64_t offset, size_t limit) const;
};

// A regular file, held open, so that it can be read after its name and its process are gone. Not
// for use by several threads.
class FileSource : public ByteSource {
 public:
  // Null if it cannot be opened or is no regular file.
  static std::shared_ptr<FileSource> Open(const std::string& path);
  ~FileSource() override;
  FileSource(const FileSource&) = delete;

  uint64_t size() const override { return size_; }
  uint64_t inode() const { return inode_; }
  uint64_t device() const { return device_; }
  bool Read(uint64_t offset, void* out, size_t size) const override;

 private:
  FileSource() = default;
  bool ReadFile(uint64_t offset, void* out, size_t size) const;

  // Cache of the last blocks of small reads: an unwinder makes dozens of them in a few places.
  static constexpr size_t kBlockBytes = 1024, kNumBlocks = 16;
  struct Block {
    uint64_t number = UINT64_MAX;
    std::array<char, kBlockBytes> bytes;
  };
  mutable std::unique_ptr<std::array<Block, kNumBlocks>> blocks_;
  int fd_ = -1;
  uint64_t size_ = 0, inode_ = 0, device_ = 0;
};

class MemorySource : public ByteSource {
 public:
  explicit MemorySource(std::string bytes) : bytes_(std::move(bytes)) {}
  uint64_t size() const override { return bytes_.size(); }
  bool Read(uint64_t offset, void* out, size_t size) const override;

 private:
  std::string bytes_;
};

}  // namespace headrace::probes::stack
