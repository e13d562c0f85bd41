#include "cli/import_hook.h"

#include <cstdlib>
#include <filesystem>
#include <string>
#include <system_error>
#include <vector>

namespace headrace::cli {
namespace {

namespace fs = std::filesystem;

constexpr const char* kLibrary = "libheadrace_account.so.1";

// Folders that may have the Python package of an executable in PREFIX/bin: of an installation, of
// the source it was built from, of `pip install --target PREFIX`, and of environments, in which pip
// puts both.
std::vector<fs::path> PackageFolders(const fs::path& prefix) {
  std::vector<fs::path> folders = {prefix / "share/headrace/python", prefix / "probes/python",
                                   prefix};
  for (const char* lib : {"lib", "lib64"}) {
    std::error_code none;
    for (const fs::directory_entry& python : fs::directory_iterator(prefix / lib, none)) {
      if (!python.path().filename().string().starts_with("python3")) continue;
      for (const char* packages : {"site-packages", "dist-packages"})
        folders.push_back(python.path() / packages);
    }
  }
  return folders;
}

}  // namespace

bool SetImportHook() {
  std::error_code error;
  const fs::path executable = fs::read_symlink("/proc/self/exe", error);
  if (error) return false;
  const fs::path folder = executable.parent_path(), above = folder.parent_path();
  for (const fs::path& package : PackageFolders(above)) {
    const fs::path hook = package / "headrace/hook";
    if (!fs::exists(hook / "sitecustomize.py", error)) continue;
    const char* before = std::getenv("PYTHONPATH");
    const std::string rest = before != nullptr && *before != 0 ? ":" + std::string(before) : "";
    setenv("PYTHONPATH", (hook.string() + rest).c_str(), 1);
    if (fs::exists(folder / kLibrary, error)) {
      setenv("HEADRACE_ACCOUNT_LIBRARY", (folder / kLibrary).c_str(), 0);
    }
    return true;
  }
  return false;
}

}  // namespace headrace::cli
