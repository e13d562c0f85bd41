#include "base/error.h"

#include <fmt/format.h>

#include <cerrno>
#include <cstring>

namespace headrace {
namespace {

std::string JoinLine(const std::string& what, const std::string& where, const std::string& fix) {
  std::string line = where.empty() ? what : where + ": " + what;
  if (!fix.empty()) line += "; " + fix;
  return Printable(line, 4096);
}

}  // namespace

Error::Error(ExitCode code, std::string what, std::string where, std::string fix)
    : code_(code),
      what_(std::move(what)),
      where_(std::move(where)),
      fix_(std::move(fix)),
      line_(JoinLine(what_, where_, fix_)) {}

Error Error::Within(const std::string& context) const {
  return Error(code_, what_, where_.empty() ? context : context + ": " + where_, fix_);
}

Error ErrnoError(int error_number, const std::string& action, const std::string& path) {
  ExitCode code = ExitCode::kFailure;
  std::string fix;
  switch (error_number) {
    case ENOSPC:
    case EDQUOT:
      code = ExitCode::kResources;
      fix = "free some space or write elsewhere";
      break;
    case EFBIG:  // a limit of the process or of the file system
      code = ExitCode::kResources;
      fix = "raise the limit of the size of files ('ulimit -f') or write elsewhere";
      break;
    case EROFS:
      fix = "write elsewhere";
      break;
    case ENOMEM:
      code = ExitCode::kResources;
      break;
    case EACCES:
    case EPERM:
      code = ExitCode::kPrivilege;
      break;
    case ENOENT:
    case EISDIR:
    case ENOTDIR:
      code = ExitCode::kBadData;
      break;
    default:
      break;
  }
  return Error(code, fmt::format("cannot {}: {}", action, std::strerror(error_number)), path, fix);
}

}  // namespace headrace
