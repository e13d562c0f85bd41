// Waits for the lock of Python's interpreter (GIL), by the function that CPython waits for it in.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "analysis/run/run_view.h"

namespace headrace::analysis {

// Kind of what Python's threads call.
inline constexpr std::string_view kThreadCall = "thread_call";

struct InterpreterWaits {
  double seconds = 0;   // of the first threads, at least
  bool is_all = false;  // hardly a stack of the processes is cut, so that there are no more
};

// Waits in take_gil() (CPython, Python/ceval_gil) of the first threads of these processes, by
// sampled stacks off the CPU. Nothing where no stack of them names that function: a Python without
// symbols never does.
std::optional<InterpreterWaits> WaitsForInterpreter(const RunView& run,
                                                    const std::vector<int64_t>& process_ids);

// The share of the consumer's step that its thread is in take_gil(), by the same stacks; of several
// ranks, that of the one where it is most, each taken to have the same part of the steps. Nothing
// where too few stacks say so, or where the step waits longer for something else.
Real InterpreterShareOfStep(const RunView& run);

// The share of their lives that threads of Python pools are in take_gil(), in the functions they
// call or before them, by the same stacks. Nothing where too few stacks say so.
Real InterpreterShareOfPools(const RunView& run);

// Which thread beside the first one runs Python in the process that the consumer's step is in:
// "thread live-stats, in LiveStats.run (live_stats.py:26)". The one that most sampled stacks of
// Python find at work; "" where too few do, or where the step is not the first thread's.
std::string OtherPythonThread(const RunView& run);

}  // namespace headrace::analysis
