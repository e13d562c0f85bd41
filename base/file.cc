#include "base/file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <cstdio>
#include <utility>

#include "base/error.h"
#include "base/temporary.h"

namespace headrace {
namespace {

// The descriptor of this process that a name such as /dev/stdout or /dev/fd/3 means, or -1. Only
// the name itself counts: a link to such a name is not what a user asked for.
int DescriptorOf(std::string_view path) {
  constexpr std::string_view kNamed[] = {"/dev/stdin", "/dev/stdout", "/dev/stderr"};
  for (int number = 0; number < 3; ++number) {
    if (path == kNamed[number]) return number;
  }
  for (const std::string_view folder : {"/dev/fd/", "/proc/self/fd/", "/proc/thread-self/fd/"}) {
    if (!path.starts_with(folder)) continue;
    int number = -1;
    const char* const end = path.data() + path.size();
    const auto [next, failed] = std::from_chars(path.data() + folder.size(), end, number);
    if (failed == std::errc() && next == end && number >= 0) return number;
  }
  return -1;
}

int Duplicate(int number, const std::string& path) {
  const int fd = fcntl(number, F_DUPFD_CLOEXEC, 0);
  if (fd < 0) throw ErrnoError(errno, "write", path);
  return fd;
}

// Where the links at `path` lead. Throws Error at one that is neither this user's nor root's.
std::string FollowOwnLinks(const std::string& path) {
  constexpr int kMostLinks = 40;  // as the kernel
  std::string at = path;
  for (int links = 0; links < kMostLinks; ++links) {
    struct stat info;
    char target[4096];
    if (lstat(at.c_str(), &info) != 0 || !S_ISLNK(info.st_mode)) return at;
    if (info.st_uid != geteuid() && info.st_uid != 0)
      throw Error(ExitCode::kPrivilege, fmt::format("is a link of another user ({})", info.st_uid),
                  at, "name another file");
    const ssize_t n = readlink(at.c_str(), target, sizeof target);
    if (n <= 0 || n == sizeof target) return at;
    const std::string next(target, static_cast<size_t>(n));
    at = next[0] == '/' ? next : FolderOf(at) + "/" + next;
  }
  throw ErrnoError(ELOOP, "open", path);
}

// A pipe that another user put into a folder where all may make files, such as /tmp, is not what
// the name was meant for (the rule of the kernel's fs.protected_fifos).
void CheckPipe(const std::string& path, const struct stat& pipe) {
  struct stat folder;
  if (pipe.st_uid == geteuid() || stat(FolderOf(path).c_str(), &folder) != 0) return;
  const bool all_may = (folder.st_mode & S_ISVTX) && (folder.st_mode & S_IWOTH);
  if (!all_may || pipe.st_uid == folder.st_uid) return;
  throw Error(ExitCode::kPrivilege, fmt::format("is a pipe of another user ({})", pipe.st_uid),
              path, "name another file");
}

// Throws Error for what may not be written in place.
void CheckDirect(const std::string& path, const struct stat& info) {
  if (S_ISBLK(info.st_mode))
    throw Error(ExitCode::kUsage, "is a disk, not a file", path, "name another file");
  if (S_ISFIFO(info.st_mode)) CheckPipe(path, info);
}

// A descriptor (O_PATH) of what `path` leads to if a file cannot take the place of that, else -1.
// Nothing is opened for it: a pipe is not waited at, a reader sees no end.
int FindDirect(const std::string& path) {
  const std::string target = FollowOwnLinks(path);
  const int fd = open(target.c_str(), O_PATH | O_NOFOLLOW | O_CLOEXEC);
  if (fd < 0) return -1;
  struct stat info;
  const bool known = fstat(fd, &info) == 0;
  if (!known || S_ISREG(info.st_mode) || S_ISDIR(info.st_mode) || S_ISLNK(info.st_mode)) {
    close(fd);
    return -1;
  }
  try {
    CheckDirect(target, info);
  } catch (const Error&) {
    close(fd);
    throw;
  }
  return fd;
}

// A descriptor for what is written directly; -1 for what is replaced by a rename.
int OpenDirect(const std::string& path) {
  if (const int number = DescriptorOf(path); number >= 0) return Duplicate(number, path);
  const int found = FindDirect(path);
  if (found < 0) return -1;
  // The very thing that was looked at, whatever has its name now.
  const int fd =
      open(fmt::format("/proc/self/fd/{}", found).c_str(), O_WRONLY | O_CLOEXEC | O_NOCTTY);
  const int error = errno;
  close(found);
  if (fd < 0) throw ErrnoError(error, "write", path);
  return fd;
}

}  // namespace

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

AtomicFile::AtomicFile(std::string path, bool replace, uint32_t mode)
    : path_(std::move(path)), replace_(replace) {
  fd_ = OpenDirect(path_);
  if (fd_ >= 0) return;
  struct stat info;
  const bool exists = lstat(path_.c_str(), &info) == 0;
  if (exists && !replace_)
    throw Error(ExitCode::kUsage, "exists", path_, "use -f to replace it, or another -o");
  if (exists && S_ISDIR(info.st_mode)) throw ErrnoError(EISDIR, "write", path_);
  Create(mode);
  if (exists && mode == kUsual && S_ISREG(info.st_mode) && info.st_uid == geteuid())
    fchmod(fd_, info.st_mode & 0777);
}

void AtomicFile::Create(uint32_t mode) {
  name_ = path_.substr(path_.rfind('/') + 1);
  if (name_.empty()) throw ErrnoError(EISDIR, "write", path_);
  folder_ = open(FolderOf(path_).c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC);
  if (folder_ < 0) throw ErrnoError(errno, "create", path_);
  for (int attempt = 0; fd_ < 0; ++attempt) {
    temporary_ = TemporaryName(name_);
    fd_ = openat(folder_, temporary_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC,
                 mode);
    if (fd_ >= 0 || (errno == EEXIST && attempt < kMostTemporaryNames)) continue;
    const int error = errno;
    close(folder_);
    throw ErrnoError(error, "create", path_);
  }
}

AtomicFile::~AtomicFile() {
  if (fd_ >= 0) {
    close(fd_);
    if (folder_ >= 0) unlinkat(folder_, temporary_.c_str(), 0);
  }
  if (folder_ >= 0) close(folder_);
}

void AtomicFile::Check(const std::string& path, bool replace) {
  if (DescriptorOf(path) >= 0) return;
  if (const int direct = FindDirect(path); direct >= 0) {
    close(direct);  // what a reader waits for must not be opened and closed in vain
  } else {
    AtomicFile(path, replace);
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

void AtomicFile::Rename() {
  const char* from = temporary_.c_str();
  const char* to = name_.c_str();
  // Without replace_, what came into being meanwhile stays as well.
  if ((replace_ ? renameat(folder_, from, folder_, to) : RenameToNew(folder_, from, to)) == 0)
    return;
  if (!replace_ && errno == EEXIST)
    throw Error(ExitCode::kUsage, "exists", path_, "use -f to replace it, or another -o");
  throw ErrnoError(errno, "rename to", path_);
}

void AtomicFile::Commit(bool sync) {
  if (folder_ >= 0) {
    if (sync && fsync(fd_) != 0) throw ErrnoError(errno, "sync", path_);
    Rename();
  }
  const int fd = std::exchange(fd_, -1);
  if (close(fd) != 0 && errno != EINTR) throw ErrnoError(errno, "write", path_);
  if (folder_ >= 0 && sync) SyncFolderOf(path_);
}

int OpenGrowingFile(const std::string& path, int flags) {
  if (const int number = DescriptorOf(path); number >= 0) return Duplicate(number, path);
  const std::string target = FollowOwnLinks(path);
  flags |= O_WRONLY | O_CREAT | O_CLOEXEC | O_NOCTTY | O_NOFOLLOW;
  const int fd = open(target.c_str(), flags | O_NONBLOCK, AtomicFile::kUsual);
  if (fd < 0) throw ErrnoError(errno, "create", path);
  try {
    struct stat info;
    if (fstat(fd, &info) != 0) throw ErrnoError(errno, "create", path);
    CheckDirect(target, info);
  } catch (const Error&) {
    close(fd);
    throw;
  }
  fcntl(fd, F_SETFL, flags & O_APPEND);  // writing may wait
  return fd;
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
