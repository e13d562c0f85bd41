// A child process that runs to its end in a process group of its own: an interrupt is for all that
// it started, and what has not ended then is killed.
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
  bool timed_out = false;    // it was killed for that
  std::string out;           // its standard output, as far as it was kept: 1 MiB at most
  std::string error;         // the end of its standard error: where it says why
  std::string last() const;  // the last line of `error` that is not empty
};

struct ChildOptions {
  bool keep_output = false;  // else its standard output is dropped
  int64_t timeout_ns = 0;    // it is killed with all of its group after so long; 0: never
};

// Runs `words`, the first of which is the path of a program, until it ends. Its standard input is
// empty. Where InstallInterruptHandler was called, an interrupt is passed on to the group, which is
// killed if it has not ended 10 s later. Ends with this process, should that be killed. Throws
// Error kFailure or kResources where no process can be made.
ChildEnd RunChild(const std::vector<std::string>& words, const ChildOptions& options = {});

// What a command of ours said that ended with another code than 0: `command` is what begins its
// last line, "headrace run". Its own code where that is one of ours, else kFailure.
Error ErrorOfChild(const ChildEnd& end, const std::string& command, const std::string& where);

}  // namespace headrace::experiments
