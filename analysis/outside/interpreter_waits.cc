#include "analysis/outside/interpreter_waits.h"

#include <algorithm>
#include <string>

#include "analysis/thresholds.h"

namespace headrace::analysis {
namespace {

// A compiler may call it take_gil.constprop.0.
bool TakesInterpreter(const std::string& folded) {
  return folded.find(";take_gil;") != std::string::npos ||
         folded.find(";take_gil.") != std::string::npos;
}

bool Has(const std::string& folded, const char* part) {
  return folded.find(part) != std::string::npos;
}

}  // namespace

std::optional<InterpreterWaits> WaitsForInterpreter(const RunView& run,
                                                    const std::vector<int64_t>& process_ids) {
  InterpreterWaits waits;
  double locks_s = 0, cut_s = 0;
  bool is_named = false;
  for (const StackRow& stack : run.stacks) {
    if (stack.kind != "off_cpu" || !stack.process_id) continue;
    if (std::find(process_ids.begin(), process_ids.end(), *stack.process_id) == process_ids.end()) {
      continue;
    }
    const double seconds = static_cast<double>(stack.time_ns) * 1e-9;
    if (Has(stack.folded, ";[lock];")) locks_s += seconds;
    if (Has(stack.folded, "[truncated]")) cut_s += seconds;
    if (!TakesInterpreter(stack.folded)) continue;
    is_named = true;
    // The C library starts a program in this function; other threads begin elsewhere.
    if (Has(stack.folded, ";__libc_start")) waits.seconds += seconds;
  }
  if (!is_named) return std::nullopt;
  waits.is_all = cut_s < kCutStacks * locks_s;
  return waits;
}

}  // namespace headrace::analysis
