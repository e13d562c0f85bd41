// Waits for locks on files (flock, fcntl, those of SQLite databases), of runs that were seen from
// outside.
#pragma once
#include <vector>

#include "analysis/outside/threads.h"
#include "analysis/outside/units.h"
#include "analysis/run/run_view.h"

namespace headrace::analysis {

// Which part of a group's time, 0 to 1, is a wait to lock a file.
struct FileLockPart {
  double of_locks = 0;   // of its time at locks: in the C library's calls that lock a file
  double of_sleeps = 0;  // of its time asleep: in SQLite, between two looks at a database's lock
};

// For each of seen.groups, by index, by sampled stacks off the CPU of the whole run; those that
// were not unwound say nothing of sleeps. Threads of one process kind with one name are not told
// apart. 0 where no stack was sampled.
std::vector<FileLockPart> FileLockParts(const RunView& run, const SeenThreads& seen);

// Whether threads with these shares wait to lock a file for longer than they work. Who ends such a
// wait hands nothing on, so what that one does beside holding the lock is not what they wait for.
bool StandsAtAFileLock(const UnitShares& shares);
// Whether that file is an SQLite database, most of the time.
bool StandsAtADatabase(const UnitShares& shares);

}  // namespace headrace::analysis
