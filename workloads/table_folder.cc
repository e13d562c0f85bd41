#include "workloads/table_folder.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <vector>

#include "base/error.h"
#include "base/file.h"
#include "base/temporary.h"

namespace headrace::workloads {
namespace {

namespace fs = std::filesystem;

bool IsTableFile(const std::string& name) {
  return name == "table.json" || name == "pipeline.toml" ||
         (name.starts_with("part-") && name.ends_with(".dwrf"));
}

void SyncPath(const fs::path& path, int (*sync)(int)) {
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) throw ErrnoError(errno, "open, to sync", path.string());
  const int error = sync(fd) == 0 ? 0 : errno;
  close(fd);
  if (error != 0 && error != EINVAL && error != EROFS)
    throw ErrnoError(error, "sync", path.string());
}

// A file that is synced by itself takes a millisecond or more of the disk; all that others have
// written may take longer than a few files, and not than thousands.
void SyncFilesOf(const fs::path& folder) {
  constexpr size_t kMostSynced = 32;
  std::vector<fs::path> files;
  for (const auto& entry : fs::directory_iterator(folder)) files.push_back(entry.path());
  if (files.size() > kMostSynced) return SyncPath(folder, syncfs);
  for (const fs::path& file : files) SyncPath(file, fsync);
  SyncPath(folder, fsync);
}

}  // namespace

TableFolder::TableFolder(const std::string& folder, bool replace) {
  // A trailing slash would put the temporary folder inside the target.
  target_ = fs::absolute(folder).lexically_normal();
  if (!target_.has_filename()) target_ = target_.parent_path();
  if (fs::exists(target_)) {
    if (!fs::is_directory(target_))
      throw Error(ExitCode::kUsage, "exists and is not a folder", target_.string(),
                  "give another name");
    if (!fs::is_empty(target_) && !replace)
      throw Error(ExitCode::kUsage, "exists and is not empty", target_.string(),
                  "give another folder, or -f to replace the table in it");
  }
  std::error_code error;
  fs::create_directories(target_.parent_path(), error);
  if (error) throw ErrnoError(error.value(), "create the folder", target_.parent_path().string());
  temporary_ = NewFolderBeside(target_.string(), 0777);
}

TableFolder::~TableFolder() {
  std::error_code ignored;
  fs::remove_all(temporary_, ignored);
}

void TableFolder::WriteText(const std::string& name, const std::string& text) const {
  AtomicFile file((temporary_ / name).string(), true);
  file.Write(text);
  file.Commit(false);
}

void TableFolder::Publish() {
  SyncFilesOf(temporary_);
  std::error_code error;
  if (fs::exists(target_) && fs::is_empty(target_)) fs::remove(target_, error);
  if (!fs::exists(target_)) {
    fs::rename(temporary_, target_, error);
    if (error) throw ErrnoError(error.value(), "rename the finished table to", target_.string());
    SyncFolderOf(target_.string());
    return;
  }
  fs::remove(target_ / "table.json", error);
  for (const auto& entry : fs::directory_iterator(target_))
    if (IsTableFile(entry.path().filename().string())) fs::remove(entry.path(), error);
  std::vector<fs::path> files;
  for (const auto& entry : fs::directory_iterator(temporary_))
    files.push_back(entry.path().filename());
  std::sort(files.begin(), files.end());  // part-*, pipeline.toml, table.json
  for (const fs::path& file : files) {
    fs::rename(temporary_ / file, target_ / file, error);
    if (error) throw ErrnoError(error.value(), "rename into place", (target_ / file).string());
  }
  SyncFolderOf((target_ / "table.json").string());
}

}  // namespace headrace::workloads
