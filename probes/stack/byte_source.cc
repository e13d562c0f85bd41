#include "probes/stack/byte_source.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace headrace::probes::stack {

std::string ByteSource::ReadText(uint64_t offset, size_t limit) const {
  if (offset >= size()) return "";
  std::string text(std::min<uint64_t>(limit, size() - offset), '\0');
  if (!Read(offset, text.data(), text.size())) return "";
  text.resize(strnlen(text.data(), text.size()));
  return text;
}

std::shared_ptr<FileSource> FileSource::Open(const std::string& path) {
  // O_NONBLOCK: a pipe or device behind the name must not hold us up.
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
  if (fd < 0) return nullptr;
  struct stat info;
  if (fstat(fd, &info) != 0 || !S_ISREG(info.st_mode)) {
    close(fd);
    return nullptr;
  }
  std::shared_ptr<FileSource> file(new FileSource);
  file->fd_ = fd;
  file->size_ = static_cast<uint64_t>(info.st_size);
  file->inode_ = info.st_ino;
  file->device_ = info.st_dev;
  return file;
}

FileSource::~FileSource() { close(fd_); }

bool FileSource::Read(uint64_t offset, void* out, size_t size) const {
  if (offset > size_ || size > size_ - offset) return false;
  const uint64_t number = offset / kBlockBytes, begin = number * kBlockBytes;
  if (size > 64 || offset + size > begin + kBlockBytes || size_ - begin < kBlockBytes) {
    return ReadFile(offset, out, size);
  }
  if (!blocks_) blocks_ = std::make_unique<std::array<Block, kNumBlocks>>();
  Block& block = (*blocks_)[number % kNumBlocks];
  if (block.number != number) {
    block.number = UINT64_MAX;
    if (!ReadFile(begin, block.bytes.data(), kBlockBytes)) return false;
    block.number = number;
  }
  std::memcpy(out, block.bytes.data() + (offset - begin), size);
  return true;
}

bool FileSource::ReadFile(uint64_t offset, void* out, size_t size) const {
  char* to = static_cast<char*>(out);
  while (size > 0) {
    const ssize_t n = pread(fd_, to, size, static_cast<off_t>(offset));
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return false;
    to += n;
    offset += static_cast<uint64_t>(n);
    size -= static_cast<size_t>(n);
  }
  return true;
}

bool MemorySource::Read(uint64_t offset, void* out, size_t size) const {
  if (offset > bytes_.size() || size > bytes_.size() - offset) return false;
  if (size > 0) std::memcpy(out, bytes_.data() + offset, size);
  return true;
}

}  // namespace headrace::probes::stack
