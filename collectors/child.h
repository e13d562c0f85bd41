// Child: a command that is started but held back until its measurement is ready. Its standard
// streams, environment, signal dispositions and process group are the caller's own; none of our
// files are open in it.
#pragma once
#include <sys/types.h>

#include <optional>
#include <string>
#include <vector>

#include "base/error.h"

namespace headrace::collectors {

class Child {
 public:
  // Finds the command as a shell does and forks. Throws Error with the exit codes of sh: 127 no
  // such command, 126 it cannot be executed. Call before starting threads.
  static Child Start(const std::vector<std::string>& command);

  Child(Child&& other) noexcept;
  Child& operator=(Child&&) = delete;
  ~Child();  // ends it unless it was released

  pid_t pid() const { return pid_; }
  bool released() const { return released_; }
  // Lets it execute the command. Throws Error, as Start does, when that fails after all.
  void Release();
  // Waits for its end and returns the wait status. Signals do not interrupt the wait.
  int Wait();
  // Sends a signal to it.
  void Signal(int signal_number) const;

 private:
  Child() = default;
  std::string name_;
  pid_t pid_ = -1;
  int go_ = -1, failure_ = -1;
  bool released_ = false;
  std::optional<int> status_;
};

// The exit status as sh gives it: the exit code, or 128 + the signal that ended it.
int ShellStatus(int wait_status);

}  // namespace headrace::collectors
