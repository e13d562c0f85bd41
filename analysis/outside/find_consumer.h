// Who takes the data, of the threads that a recording from outside has seen.
#pragma once
#include <optional>

#include "analysis/outside/slices.h"

namespace headrace::analysis {

// Seconds in which these threads computed, wanted to, or waited for a device; of sleep a part, as
// it may stand for a device that others model.
double GroupWork(const ThreadTimes& time);

// The group that is the main thread of the process which others feed: the root, or, below a
// launcher that only waits for its children, the child that used most CPU time, and so on. Empty:
// no process.
std::optional<size_t> FindConsumer(const SeenThreads& seen, const Totals& totals);

}  // namespace headrace::analysis
