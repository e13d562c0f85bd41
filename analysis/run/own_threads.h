// What an operator waits for through threads of its own process, and whether a process waits for
// sockets.
#pragma once
#include <cstdint>
#include <string>

#include "analysis/run/run_view.h"

namespace headrace::analysis {

// An operator that hands its requests to a pool of threads waits at a lock for them to end; what it
// really waits for is what they wait for. "network" or "storage" where the threads of its process
// that end its process's first thread's waits at locks spend more time in such waits than in
// anything else, and long enough for all of the operator's; "cpu" where those that end many of its
// waits compute for so long, "sleep" where they sleep for as long, and often; "" where they do not,
// or nobody timed them.
std::string CauseInOwnThreads(const RunView& run, const OperatorRow& op);

// Whether sockets brought bytes to the process for most of the time that it was there: where it
// waits in poll(), it waits for a socket.
bool ReceivesAllTheTime(const RunView& run, int64_t process_id);

}  // namespace headrace::analysis
