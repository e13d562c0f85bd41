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

// Length of the valid UTF-8 sequence at `p` (1..4), or 0.
size_t Utf8Length(const unsigned char* p, size_t left) {
  const unsigned char lead = p[0];
  const size_t length = lead < 0x80   ? 1
                        : lead < 0xC2 ? 0
                        : lead < 0xE0 ? 2
                        : lead < 0xF0 ? 3
                        : lead < 0xF5 ? 4
                                      : 0;
  if (length == 0 || length > left) return 0;
  for (size_t i = 1; i < length; ++i) {
    if ((p[i] & 0xC0) != 0x80) return 0;
  }
  // Longer than need be, halves of surrogate pairs, and past U+10FFFF.
  if ((lead == 0xE0 && p[1] < 0xA0) || (lead == 0xED && p[1] >= 0xA0) ||
      (lead == 0xF0 && p[1] < 0x90) || (lead == 0xF4 && p[1] >= 0x90))
    return 0;
  return length;
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

std::string Printable(const std::string& text, size_t max_bytes) {
  std::string out;
  const auto* bytes = reinterpret_cast<const unsigned char*>(text.data());
  for (size_t i = 0; i < text.size();) {
    if (out.size() >= max_bytes) return out + "...";
    const size_t length = Utf8Length(bytes + i, text.size() - i);
    if (length == 0 || (length == 1 && (bytes[i] < 0x20 || bytes[i] == 0x7F))) {
      out += fmt::format("\\x{:02x}", bytes[i]);
      i += 1;
    } else {
      out.append(text, i, length);
      i += length;
    }
  }
  return out;
}

}  // namespace headrace
