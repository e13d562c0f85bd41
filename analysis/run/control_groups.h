// The limits of the control groups, v1 and v2, that a run's processes were in.
#pragma once
#include <string>
#include <vector>

#include "analysis/run/run_view.h"

namespace headrace::analysis {

// Whether each group lies within the one before it, so that the limits of all of them bind. Groups
// side by side are of several processes, and their limits add up.
bool EachWithinTheOther(std::vector<std::string> groups);

// The least memory that the groups leave the processes: a hard limit (memory.max), or one from
// which on the kernel slows them down (memory.high). Empty: none was recorded, or the groups that
// have one stand side by side.
Real MemoryOfGroups(const RunView& run);

// Lowers the memory of the run to that. What is recorded with a run is what its recorder could use,
// which another group may bind than the processes that it was given to record.
void LowerToGroups(RunView* run);

}  // namespace headrace::analysis
