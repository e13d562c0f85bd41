// What limits a program that is seen from outside, and how sure that is: by slices drawn anew
// (block bootstrap, analysis/statistics), less what was lost, what others use of the cores, and
// what would look the same.
#pragma once
#include <cstddef>
#include <vector>

#include "analysis/outside/judge.h"
#include "analysis/outside/slices.h"
#include "analysis/outside/units.h"

namespace headrace::analysis {

// Threads of the consumer's process but its own: how many of them, on average, are at a time on or
// ready for a CPU, asleep, at a socket, at storage.
struct ThreadCounts {
  double on_cpu = 0, sleep = 0, network = 0, storage = 0, timed_out = 0;
};
ThreadCounts CountsAtHome(const Outside& out);

// Where by Python's functions the consumer's thread is at work, by the kernel it waits with a time
// limit, and another thread of Python is at work meanwhile: CPython waits for its interpreter's
// lock so. Raises `interpreter_ratio` to that. Before AddFindings.
void InferInterpreterWaits(Outside* out);

// Fills in `findings` and `stall_interval`. `all`: indexes of the slices that the verdict is about;
// `lost_share`: of what was recorded, 0 to 1. `judge` has the units of `out`.
void AddFindings(OutsideJudge& judge, const Slices& slices, const std::vector<size_t>& all,
                 double lost_share, Outside* out);

// Whether its Python functions say that the consumer is in its step most of the time.
bool StepIsSeen(const Outside& out);

// Of those that feed the consumer from processes of their own, who computes most, where they
// compute more than it does and it waits for a core half as long as it computes, or longer. Nothing
// where a quota or another process of the program keeps it off the cores.
std::optional<size_t> WhoFeedsAtItsCost(const Outside& out);

// Whether the consumer waits for Python's interpreter for longer than for what its other threads
// make: then none of these is what limits.
bool WaitsForItsTurn(const Outside& out);

// Threads of one name are judged by their mean. Where that says little, the one of them that is
// always busy, by its sampled stacks, is what the others wait for: it becomes findings[0], with
// `culprit` and `is_busy_thread`. Needs what AddFindings fills in.
void FindBusyThread(double lost_share, Outside* out);

}  // namespace headrace::analysis
