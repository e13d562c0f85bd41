// How a process ended, as column exit_text of view process_summary has it.
#pragma once
#include <string>

namespace headrace::collectors {

// From the wait status: "exited 1", "killed by signal 9".
std::string ExitText(int status);
// Whether `exit_text` says that the process was killed by a signal other than those that ask it to
// end (SIGHUP, SIGINT, SIGTERM) or tell it that nobody reads its output (SIGPIPE).
bool IsCrash(const std::string& exit_text);

}  // namespace headrace::collectors
