#include "reader/source/local_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "base/buffer.h"
#include "base/error.h"
#include "reader/source/page_cache.h"

namespace headrace::reader {
namespace {

constexpr uint64_t kMask = LocalFile::kBlockBytes - 1;

}  // namespace

LocalFile::LocalFile(const std::string& path, bool direct) : file_(path) {
  if (!direct) return;
  direct_ = open(path.c_str(), O_RDONLY | O_DIRECT | O_CLOEXEC);
  if (direct_ >= 0) return;
  if (errno == EINVAL) {
    throw Error(ExitCode::kUsage, "its file system cannot read past the page cache (O_DIRECT)",
                path, "set source.direct = false");
  }
  throw ErrnoError(errno, "open with O_DIRECT", path);
}

LocalFile::~LocalFile() {
  if (direct_ >= 0) close(direct_);
}

std::string LocalFile::version() const {
  struct stat status = {};
  if (fstat(file_.descriptor(), &status) != 0) return {};
  return fmt::format("{}.{:09}", status.st_mtim.tv_sec, status.st_mtim.tv_nsec);
}

void LocalFile::ReadAt(uint64_t offset, std::span<uint8_t> out) const {
  if (direct_ < 0) return file_.ReadAt(offset, out);
  if (out.empty()) return;
  if (offset > size() || out.size() > size() - offset) {
    throw Error(
        ExitCode::kBadData,
        fmt::format("ends at byte {}, {} bytes were wanted at byte {}", size(), out.size(), offset),
        name());
  }
  // Footers and indexes, which lie anywhere: through whole blocks of a buffer of the thread.
  thread_local Buffer blocks;
  const uint64_t first = offset & ~kMask,
                 end = std::min((offset + out.size() + kMask) & ~kMask, size());
  blocks.Resize(((end - first + kMask) & ~kMask) + kMask);
  uint8_t* const data = reinterpret_cast<uint8_t*>(
      (reinterpret_cast<uintptr_t>(blocks.data()) + kMask) & ~static_cast<uintptr_t>(kMask));
  ReadBlocks(first, {data, end - first});
  std::memcpy(out.data(), data + (offset - first), out.size());
}

void LocalFile::ReadMany(std::span<const ReadRequest> requests, ReadFigures* figures) const {
  if (direct_ < 0) return Source::ReadMany(requests, figures);
  for (const ReadRequest& request : requests) {
    ReadBlocks(request.offset, request.out);
    ++figures->requests;
    figures->bytes += request.out.size();
  }
}

void LocalFile::ForgetPages(uint64_t offset, uint64_t length) const {
  DropFromPageCache(file_.descriptor(), offset, length);
}

void LocalFile::ReadBlocks(uint64_t offset, std::span<uint8_t> out) const {
  const uint64_t room = (out.size() + kMask) & ~kMask;
  for (uint64_t done = 0; done < out.size();) {
    const ssize_t n =
        pread(direct_, out.data() + done, room - done, static_cast<off_t>(offset + done));
    if (n > 0) {
      done += static_cast<uint64_t>(n);
    } else if (n == 0) {
      throw Error(ExitCode::kBadData,
                  fmt::format("the file ends {} bytes early", out.size() - done),
                  fmt::format("{}: byte {}", name(), offset + done));
    } else if (errno != EINTR) {
      throw ErrnoError(
          errno, fmt::format("read {} bytes at byte {}", out.size() - done, offset + done), name());
    }
  }
}

std::shared_ptr<const Source> OpenFileSource(const std::string& path) {
  return std::make_shared<LocalFile>(path, false);
}

}  // namespace headrace::reader
