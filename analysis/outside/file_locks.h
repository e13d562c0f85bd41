// Waits for locks on files (flock, fcntl), of runs that were seen from outside.
#pragma once
#include <vector>

#include "analysis/outside/threads.h"
#include "analysis/outside/units.h"
#include "analysis/run/run_view.h"

namespace headrace::analysis {

// For each of seen.groups, by index: which part of its time at locks, 0 to 1, is spent in the C
// library's calls that lock a file, by sampled stacks off the CPU of the whole run. Threads of one
// process kind with one name are not told apart. 0 where no stack was sampled.
std::vector<double> FileLockParts(const RunView& run, const SeenThreads& seen);

// Whether threads with these shares wait to lock a file for longer than they work. Who ends such a
// wait hands nothing on, so what that one does beside holding the lock is not what they wait for.
bool StandsAtAFileLock(const UnitShares& shares);

}  // namespace headrace::analysis
