#include "base/file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <utility>

#include "base/error.h"

namespace headrace {

File::File(const std::string& path) : path_(path) {
  fd_ = open(path.c_str(),
             O_RDONLY | O_CLOEXEC | O_NONBLOCK);  // non-blocking: a FIFO must not hang the open
  if (fd_ < 0) throw ErrnoError(errno, "open", path);
  struct stat info;
  if (fstat(fd_, &info) != 0 || !S_ISREG(info.st_mode)) {
    close(fd_);
    throw Error(ExitCode::kBadData, "is not a regular file", path);
  }
  size_ = static_cast<uint64_t>(info.st_size);
}

File::~File() {
  if (fd_ >= 0) close(fd_);
}

File::File(File&& other) noexcept { *this = std::move(other); }

File& File::operator=(File&& other) noexcept {
  std::swap(path_, other.path_);
  std::swap(fd_, other.fd_);
  std::swap(size_, other.size_);
  return *this;
}

void File::ReadAt(uint64_t offset, std::span<uint8_t> out) const {
  size_t done = 0;
  while (done < out.size()) {
    const ssize_t n =
        pread(fd_, out.data() + done, out.size() - done, static_cast<off_t>(offset + done));
    if (n > 0) {
      done += static_cast<size_t>(n);
    } else if (n == 0) {
      throw Error(ExitCode::kBadData,
                  fmt::format("the file ends {} bytes early", out.size() - done),
                  fmt::format("{}: byte {}", path_, offset + done));
    } else if (errno != EINTR) {
      throw ErrnoError(
          errno, fmt::format("read {} bytes at byte {}", out.size() - done, offset + done), path_);
    }
  }
}

AtomicFile::AtomicFile(std::string path, bool replace, uint32_t mode) : path_(std::move(path)) {
  struct stat info;
  if (!replace && lstat(path_.c_str(), &info) == 0) {
    throw Error(ExitCode::kUsage, "exists", path_, "use -f to replace it, or another -o");
  }
  temporary_ = fmt::format("{}.tmp{}", path_, getpid());
  fd_ = open(temporary_.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, mode);
  if (fd_ < 0) throw ErrnoError(errno, "create", path_);
}

AtomicFile::~AtomicFile() {
  if (fd_ >= 0) {
    close(fd_);
    unlink(temporary_.c_str());
  }
}

void AtomicFile::Write(std::span<const uint8_t> bytes) {
  while (!bytes.empty()) {
    const ssize_t n = write(fd_, bytes.data(), bytes.size());
    if (n < 0) {
      if (errno == EINTR) continue;
      throw ErrnoError(errno, fmt::format("write at byte {}", size_), path_);
    }
    size_ += static_cast<uint64_t>(n);
    bytes = bytes.subspan(static_cast<size_t>(n));
  }
}

void AtomicFile::Write(std::string_view text) {
  Write({reinterpret_cast<const uint8_t*>(text.data()), text.size()});
}

void AtomicFile::Commit(bool sync) {
  if (sync && fsync(fd_) != 0) throw ErrnoError(errno, "sync", path_);
  if (rename(temporary_.c_str(), path_.c_str()) != 0) throw ErrnoError(errno, "rename to", path_);
  close(fd_);
  fd_ = -1;
}

std::string ReadWholeFile(const std::string& path, uint64_t max_bytes) {
  const File file(path);
  if (file.size() > max_bytes)
    throw Error(ExitCode::kBadData,
                fmt::format("is {} bytes, more than the {} allowed here", file.size(), max_bytes),
                path);
  std::string text(file.size(), '\0');
  file.ReadAt(0, {reinterpret_cast<uint8_t*>(text.data()), text.size()});
  return text;
}

}  // namespace headrace
