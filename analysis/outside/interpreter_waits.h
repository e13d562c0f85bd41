// Waits for the lock of Python's interpreter (GIL), by the function that CPython waits for it in.
#pragma once
#include <cstdint>
#include <optional>
#include <vector>

#include "analysis/run/run_view.h"

namespace headrace::analysis {

// Seconds that the first threads of these processes waited in take_gil() (CPython,
// Python/ceval_gil), by sampled stacks off the CPU; nothing where no such stack of a first thread
// is whole.
std::optional<double> SecondsForInterpreter(const RunView& run,
                                            const std::vector<int64_t>& process_ids);

}  // namespace headrace::analysis
