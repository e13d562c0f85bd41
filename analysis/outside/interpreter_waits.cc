#include "analysis/outside/interpreter_waits.h"

#include <algorithm>
#include <string>

namespace headrace::analysis {

std::optional<double> SecondsForInterpreter(const RunView& run,
                                            const std::vector<int64_t>& process_ids) {
  std::optional<double> seconds;
  for (const StackRow& stack : run.stacks) {
    if (stack.kind != "off_cpu" || !stack.process_id) continue;
    if (std::find(process_ids.begin(), process_ids.end(), *stack.process_id) == process_ids.end()) {
      continue;
    }
    // The C library starts a program in this function; other threads begin elsewhere.
    if (stack.folded.find(";__libc_start") == std::string::npos) continue;
    const bool waits = stack.folded.find(";take_gil;") != std::string::npos;
    seconds = seconds.value_or(0) + (waits ? static_cast<double>(stack.time_ns) * 1e-9 : 0);
  }
  return seconds;
}

}  // namespace headrace::analysis
