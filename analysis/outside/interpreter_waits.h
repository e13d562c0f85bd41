// Waits for the lock of Python's interpreter (GIL), by the function that CPython waits for it in.
#pragma once
#include <cstdint>
#include <optional>
#include <vector>

#include "analysis/run/run_view.h"

namespace headrace::analysis {

struct InterpreterWaits {
  double seconds = 0;   // of the first threads, at least
  bool is_all = false;  // hardly a stack of the processes is cut, so that there are no more
};

// Waits in take_gil() (CPython, Python/ceval_gil) of the first threads of these processes, by
// sampled stacks off the CPU. Nothing where no stack of them names that function: a Python without
// symbols never does.
std::optional<InterpreterWaits> WaitsForInterpreter(const RunView& run,
                                                    const std::vector<int64_t>& process_ids);

}  // namespace headrace::analysis
