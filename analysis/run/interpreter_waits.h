// Waits for the lock of Python's interpreter (GIL), by the function that CPython waits for it in.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
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

// The same of the threads that are in an operator; 0 where no stack of it names that function.
double InterpreterSecondsIn(const RunView& run, const OperatorRow& op);

// Which thread beside the first one runs Python in the process that the consumer's step is in:
// "thread live-stats, in LiveStats.run (live_stats.py:26)". The one that most sampled stacks of
// Python find at work, not in a wait of the standard library; "" where there is none.
std::string OtherPythonThread(const RunView& run);

}  // namespace headrace::analysis
