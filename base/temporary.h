// Temporary files and folders beside what they will become. They are created under names that
// nobody can predict, so that no link or file planted in their place is written to.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace headrace {

// "NAME.tmpPID-RANDOM": a name of this process, with 64 random bits. `name` has no folder.
std::string TemporaryName(std::string_view name);

// How many of these names to try where one is taken, which is no chance, but costs nothing.
inline constexpr int kMostTemporaryNames = 16;

// 64 random bits as 16 digits.
std::string RandomDigits();

// The parts of such a name; nothing for any other name. Names of earlier versions have no random
// part.
struct TemporaryOf {
  std::string name;  // what it was to become
  int64_t pid = 0;   // of the process that made it
};
std::optional<TemporaryOf> ParseTemporaryName(std::string_view name);

// Makes an empty file, or folder, beside `path`, with permissions `mode` less the umask. Returns
// its path. Throws Error.
std::string NewFileBeside(const std::string& path, uint32_t mode);
std::string NewFolderBeside(const std::string& path, uint32_t mode);

// Renames within `folder` (AT_FDCWD: paths), but replaces nothing: where `to` exists, errno is
// EEXIST. Returns 0, or -1 and errno.
int RenameToNew(int folder, const char* from, const char* to);

// Makes what was renamed in the folder of `path` last through a crash of the machine. Throws Error.
void SyncFolderOf(const std::string& path);

// The folder of a path: "." where it names none.
std::string FolderOf(const std::string& path);

}  // namespace headrace
