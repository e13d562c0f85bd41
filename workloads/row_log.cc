#include "workloads/row_log.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "base/error.h"
#include "base/file.h"

namespace headrace::workloads {
namespace {

constexpr size_t kMaxPendingBytes = 64 << 10;

}  // namespace

RowLog::RowLog(std::string path) : path_(std::move(path)) { fd_ = OpenGrowingFile(path_); }

RowLog::~RowLog() {
  try {
    Write();
  } catch (const Error&) {  // said by Sync, if anybody asked
  }
  close(fd_);
}

void RowLog::Add(uint64_t epoch, uint64_t row, uint64_t hash) {
  fmt::format_to(std::back_inserter(pending_), "{} {} {:016x}\n", epoch, row, hash);
  if (pending_.size() >= kMaxPendingBytes) Write();
}

void RowLog::Write() {
  if (bytes_ == 0 && !pending_.empty() && ftruncate(fd_, 0) != 0 && errno != EINVAL)
    throw ErrnoError(errno, "empty", path_);
  for (size_t done = 0; done < pending_.size();) {
    const ssize_t n = write(fd_, pending_.data() + done, pending_.size() - done);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) throw ErrnoError(errno, fmt::format("write at byte {}", bytes_), path_);
    done += static_cast<size_t>(n);
    bytes_ += static_cast<uint64_t>(n);
  }
  pending_.clear();
}

uint64_t RowLog::Sync() {
  Write();
  // A device or a pipe takes no sync.
  if (fdatasync(fd_) != 0 && errno != EINVAL && errno != EROFS)
    throw ErrnoError(errno, "sync", path_);
  return bytes_;
}

void RowLog::Resume(uint64_t bytes) {
  struct stat info;
  if (fstat(fd_, &info) != 0) throw ErrnoError(errno, "look at", path_);
  if (static_cast<uint64_t>(info.st_size) < bytes)
    throw Error(
        ExitCode::kBadData,
        fmt::format("holds {} bytes, and the checkpoint was made behind {}", info.st_size, bytes),
        path_, "a run goes on only with the row log it wrote");
  if (ftruncate(fd_, static_cast<off_t>(bytes)) != 0) throw ErrnoError(errno, "cut", path_);
  if (lseek(fd_, static_cast<off_t>(bytes), SEEK_SET) < 0) throw ErrnoError(errno, "seek", path_);
  bytes_ = bytes;
}

}  // namespace headrace::workloads
