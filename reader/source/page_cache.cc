#include "reader/source/page_cache.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>

#include "base/error.h"

namespace headrace::reader {
namespace {

constexpr uint64_t kPieceBytes = 64 << 20;
constexpr uint64_t kMostPieces = 1024;

class Descriptor {
 public:
  explicit Descriptor(const std::string& path) : fd_(open(path.c_str(), O_RDONLY | O_CLOEXEC)) {}
  ~Descriptor() {
    if (fd_ >= 0) close(fd_);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  int get() const { return fd_; }

 private:
  int fd_;
};

uint64_t PageBytes() {
  static const uint64_t bytes = static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
  return bytes;
}

// False: the piece cannot be looked at.
bool AddPiece(int fd, uint64_t offset, uint64_t length, Residency* sum) {
  void* const mapped = mmap(nullptr, length, PROT_READ, MAP_SHARED, fd, static_cast<off_t>(offset));
  if (mapped == MAP_FAILED) return false;
  std::vector<unsigned char> pages((length + PageBytes() - 1) / PageBytes());
  const bool known = mincore(mapped, length, pages.data()) == 0;
  munmap(mapped, length);
  if (!known) return false;
  for (size_t i = 0; i < pages.size(); ++i) {
    const uint64_t bytes = std::min(PageBytes(), length - i * PageBytes());
    sum->bytes += bytes;
    if ((pages[i] & 1) != 0) sum->resident_bytes += bytes;
  }
  return true;
}

}  // namespace

Residency ReadResidency(const std::vector<std::string>& paths) {
  uint64_t pieces = 0;
  struct stat status = {};
  for (const std::string& path : paths) {
    if (stat(path.c_str(), &status) != 0) continue;
    pieces += (static_cast<uint64_t>(status.st_size) + kPieceBytes - 1) / kPieceBytes;
  }
  const uint64_t stride = std::max<uint64_t>(1, (pieces + kMostPieces - 1) / kMostPieces);
  Residency sum;
  uint64_t piece = 0;
  for (const std::string& path : paths) {
    const Descriptor file(path);
    if (file.get() < 0 || fstat(file.get(), &status) != 0) {
      sum.unknown = "a file of the table cannot be opened: " + Printable(path);
      return sum;
    }
    if (geteuid() != 0 && status.st_uid != geteuid() && access(path.c_str(), W_OK) != 0) {
      sum.unknown = "the kernel tells only the owner or a writer of a file which of it is cached";
      return sum;
    }
    const uint64_t size = static_cast<uint64_t>(status.st_size);
    for (uint64_t offset = 0; offset < size; offset += kPieceBytes) {
      if (piece++ % stride != 0) continue;
      if (!AddPiece(file.get(), offset, std::min(kPieceBytes, size - offset), &sum)) {
        sum.unknown = "a file of the table cannot be mapped: " + Printable(path);
        return sum;
      }
    }
  }
  if (sum.bytes == 0) sum.unknown = "the table's files are empty";
  return sum;
}

void DropFromPageCache(const std::vector<std::string>& paths) {
  for (const std::string& path : paths) {
    const Descriptor file(path);
    if (file.get() < 0) continue;
    fdatasync(file.get());  // only clean pages go
    posix_fadvise(file.get(), 0, 0, POSIX_FADV_DONTNEED);
  }
}

void DropFromPageCache(int descriptor, uint64_t offset, uint64_t length) {
  if (length == 0) return;
  // The kernel keeps pages that the range covers in part.
  const uint64_t first = offset / PageBytes() * PageBytes();
  const uint64_t end = (offset + length + PageBytes() - 1) / PageBytes() * PageBytes();
  posix_fadvise(descriptor, static_cast<off_t>(first), static_cast<off_t>(end - first),
                POSIX_FADV_DONTNEED);
}

}  // namespace headrace::reader
