// The one exception of the project, thrown where a job cannot go on. Its code is the process's exit
// code.
//
// Expected absence (no counter, a probe refused) is a value, never an Error; a broken invariant is
// HR_CHECK.
#pragma once
#include <cstdint>
#include <exception>
#include <string>

#include "base/terminal_text.h"

namespace headrace {

// Exit codes of every command (docs/cli.md); the numbers are a contract with scripts.
enum class ExitCode : int {
  kOk = 0,
  kFailure = 1,
  kUsage = 2,
  kGateFailed = 3,
  kInconclusive = 4,  // undecided, or no feasible plan
  kBadData = 5,
  kPrivilege = 6,  // a permission or a kernel feature is missing
  kResources = 7,  // out of disk or memory
  kInterrupted = 130,
};

class Error : public std::exception {
 public:
  // `what`: the fact, values last. `where`: file and position ("a.dwrf: stripe 3, byte 91204"), may
  // be empty. `fix`: what the user can do, may be empty.
  Error(ExitCode code, std::string what, std::string where = {}, std::string fix = {});

  ExitCode code() const { return code_; }
  const std::string& fact() const { return what_; }
  const std::string& where() const { return where_; }
  const std::string& fix() const { return fix_; }

  // One line: "where: what; fix" with absent parts left out, Printable, so that a hostile file name
  // or field name can neither break the line nor move the cursor.
  const char* what() const noexcept override { return line_.c_str(); }

  // The same error with `context` put before the place, e.g. the operator or the file it happened
  // in.
  Error Within(const std::string& context) const;

 private:
  ExitCode code_;
  std::string what_, where_, fix_, line_;
};

// The failure of a system call on `path`: ENOSPC, EDQUOT, EFBIG and ENOMEM give kResources, EACCES
// and EPERM kPrivilege, ENOENT kBadData, all others kFailure. `action` is a verb phrase: "open",
// "write 4096 bytes to".
Error ErrnoError(int error_number, const std::string& action, const std::string& path);

}  // namespace headrace
