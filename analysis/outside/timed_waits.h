// Waits with a time limit that is shorter than the wait: `queue.get(timeout=0.1)` again and again.
// To the kernel each that ran out is a sleep; the functions of a Python thread say what it was for.
#pragma once
#include "analysis/outside/slices.h"
#include "analysis/outside/threads.h"
#include "analysis/run/run_view.h"

namespace headrace::analysis {

// Where the main threads of a kind of Python processes, by their sampled functions, mostly wait for
// others and hardly ever sleep, what they slept becomes waits for those who end their waits at
// locks: as much of it as samples show of such waits. Nothing changes where others ended waits of
// less than a twentieth of that time. Not of programs of Ray.
void JoinTimedWaits(const RunView& run, const SeenThreads& seen, Slices* slices);

}  // namespace headrace::analysis
