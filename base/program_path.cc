#include "base/program_path.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>

namespace headrace {
namespace {

int WhyNotExecutable(const std::string& path) {
  struct stat info;
  if (stat(path.c_str(), &info) != 0) return errno;
  if (!S_ISREG(info.st_mode)) return EACCES;
  return access(path.c_str(), X_OK) == 0 ? 0 : errno;
}

}  // namespace

ProgramPath FindProgram(const std::string& name) {
  if (name.find('/') != std::string::npos || name.empty()) {
    const int error = name.empty() ? ENOENT : WhyNotExecutable(name);
    return {error == 0 ? name : "", error};
  }
  const char* path = std::getenv("PATH");
  const std::string folders = path ? path : "/usr/local/bin:/usr/bin:/bin";
  int error = ENOENT;
  for (size_t at = 0; at <= folders.size();) {
    const size_t end = std::min(folders.find(':', at), folders.size());
    const std::string folder = end > at ? folders.substr(at, end - at) : ".";
    const std::string file = folder + "/" + name;
    const int code = WhyNotExecutable(file);
    if (code == 0) return {file, 0};
    if (code == EACCES) error = EACCES;
    at = end + 1;
  }
  return {"", error};
}

}  // namespace headrace
