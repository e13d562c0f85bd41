#include "base/temporary.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <linux/fs.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>

#include "base/error.h"

namespace headrace {
namespace {

constexpr std::string_view kMark = ".tmp";
constexpr size_t kRandomDigits = 16;
constexpr size_t kMaxNameBytes = 220;  // of NAME_MAX, 255: the rest is for the mark

// Calls make(path) with new names until it succeeds; it returns -1 and sets errno as system calls
// do.
template <typename Make>
std::string NewBeside(const std::string& path, Make make) {
  const size_t slash = path.rfind('/');
  const std::string folder = slash == std::string::npos ? "" : path.substr(0, slash + 1);
  const std::string name = slash == std::string::npos ? path : path.substr(slash + 1);
  for (int attempt = 0;; ++attempt) {
    const std::string temporary = folder + TemporaryName(name);
    if (make(temporary.c_str()) >= 0) return temporary;
    if (errno != EEXIST || attempt == kMostTemporaryNames) throw ErrnoError(errno, "create", path);
  }
}

}  // namespace

std::string RandomDigits() {
  uint64_t bits = 0;
  if (getrandom(&bits, sizeof bits, 0) != sizeof bits)
    throw ErrnoError(errno, "get random numbers for", "a temporary file");
  return fmt::format("{:0{}x}", bits, kRandomDigits);
}

std::string TemporaryName(std::string_view name) {
  return fmt::format("{}{}{}-{}", name.substr(0, kMaxNameBytes), kMark, getpid(), RandomDigits());
}

std::optional<TemporaryOf> ParseTemporaryName(std::string_view name) {
  const size_t at = name.rfind(kMark);
  if (at == std::string_view::npos) return std::nullopt;
  TemporaryOf found{std::string(name.substr(0, at)), 0};
  const char* const end = name.data() + name.size();
  const auto [next, failed] = std::from_chars(name.data() + at + kMark.size(), end, found.pid);
  if (failed != std::errc() || found.pid <= 0) return std::nullopt;
  const std::string_view rest(next, static_cast<size_t>(end - next));
  const bool random = rest.size() == 1 + kRandomDigits && rest[0] == '-' &&
                      rest.find_first_not_of("0123456789abcdef", 1) == std::string_view::npos;
  if (!rest.empty() && !random) return std::nullopt;
  return found;
}

std::string NewFileBeside(const std::string& path, uint32_t mode) {
  return NewBeside(path, [mode](const char* temporary) {
    const int fd = open(temporary, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, mode);
    if (fd >= 0) close(fd);
    return fd;
  });
}

std::string NewFolderBeside(const std::string& path, uint32_t mode) {
  return NewBeside(path, [mode](const char* temporary) { return mkdir(temporary, mode); });
}

int RenameToNew(int folder, const char* from, const char* to) {
  if (syscall(SYS_renameat2, folder, from, folder, to, RENAME_NOREPLACE) == 0) return 0;
  if (errno != EINVAL && errno != ENOSYS) return -1;
  // This file system cannot refuse by itself.
  if (faccessat(folder, to, F_OK, AT_SYMLINK_NOFOLLOW) == 0) {
    errno = EEXIST;
    return -1;
  }
  return renameat(folder, from, folder, to);
}

std::string FolderOf(const std::string& path) {
  const size_t slash = path.rfind('/');
  if (slash == std::string::npos) return ".";
  return slash == 0 ? "/" : path.substr(0, slash);
}

void SyncFolderOf(const std::string& path) {
  const std::string folder = FolderOf(path);
  const int fd = open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0) return;  // one that may be written but not read can only be synced with the disk
  const int error = fsync(fd) == 0 ? 0 : errno;
  close(fd);
  if (error != 0 && error != EINVAL && error != EROFS)
    throw ErrnoError(error, "sync the folder of", path);
}

}  // namespace headrace
