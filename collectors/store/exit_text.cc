#include "collectors/store/exit_text.h"

#include <fmt/format.h>
#include <signal.h>
#include <sys/wait.h>

#include <cstdio>

namespace headrace::collectors {

std::string ExitText(int status) {
  if (WIFSIGNALED(status)) return fmt::format("killed by signal {}", WTERMSIG(status));
  if (WIFEXITED(status)) return fmt::format("exited {}", WEXITSTATUS(status));
  return "";
}

bool IsCrash(const std::string& exit_text) {
  int number = 0;
  if (std::sscanf(exit_text.c_str(), "killed by signal %d", &number) != 1) return false;
  return number != SIGHUP && number != SIGINT && number != SIGTERM && number != SIGPIPE;
}

}  // namespace headrace::collectors
