// Standard output and standard error of every command, guarded, so that no name in what a command
// prints can control the terminal (base/terminal_text.h). Data whose bytes must not change goes to
// DataOutput().
#pragma once
#include <cstdio>

namespace headrace::cli {

// While it lives, `stdout` and `stderr` are streams that escape what a terminal would obey. Make
// one, before the first output. Descriptors 1 and 2 are as they were.
class OutputGuard {
 public:
  OutputGuard();
  ~OutputGuard();  // writes what is left; its errors are lost, so flush before
  OutputGuard(const OutputGuard&) = delete;
  OutputGuard& operator=(const OutputGuard&) = delete;
};

// The errno of the first write to standard output that failed; 0: none has.
int StandardOutputFailure();

// Standard output without a guard, for data in files and pipes; the guarded one where standard
// output is a terminal.
std::FILE* DataOutput();

}  // namespace headrace::cli
