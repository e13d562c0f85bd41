// A child process that runs to its end in a process group of its own. An interrupt goes to
// everything that it started, and whatever does not end then is killed.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "base/error.h"

namespace headrace::experiments {

// The path of this program (/proc/self/exe), for starting another one of it. Throws Error.
std::string SelfPath();

struct ChildEnd {
  int code = 0;              // as a shell gives it
  bool timed_out = false;    // it was killed after timeout_ns
  std::string out;           // its standard output, as far as it was kept: 1 MiB at most
  std::string error;         // the end of its standard error: where it says why
  std::string last() const;  // the last line of `error` that is not empty
};

struct ChildOptions {
  bool keep_output = false;  // else its standard output is dropped
  int64_t timeout_ns = 0;    // it is killed with its whole group after this time; 0: never
};

// Runs `words`, the first of which is the path of a program, until it ends. Its standard input is
// empty. Where InstallInterruptHandler was called, an interrupt is passed on to the group, which is
// killed if it has not ended 10 s later. The child is killed if this process is killed. Throws
// Error kFailure or kResources where no process can be made.
ChildEnd RunChild(const std::vector<std::string>& words, const ChildOptions& options = {});

// The Error for one of our own commands that ended with a code other than 0, made from what it
// printed. `command` is what its last line begins with: "headrace run". The Error has the child's
// exit code where that is one of ours, else kFailure.
Error ErrorOfChild(const ChildEnd& end, const std::string& command, const std::string& where);

}  // namespace headrace::experiments
