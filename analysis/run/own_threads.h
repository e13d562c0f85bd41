// What an operator waits for through threads of its own process.
#pragma once
#include <string>

#include "analysis/run/run_view.h"

namespace headrace::analysis {

// An operator that hands its requests to a pool of threads waits at a lock for them to end; what it
// really waits for is what they wait for. "network", "storage" or "sleep" where other threads of
// the processes in which `op` waits at locks spend most of their time in such waits, and long
// enough for all of those; "" where none do, or nobody timed them.
std::string CauseInOwnThreads(const RunView& run, const OperatorRow& op);

}  // namespace headrace::analysis
