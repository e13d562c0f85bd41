// Ranks: trainers of one job, each with a loader of its own, recorded together.
#pragma once
#include "analysis/run/run_view.h"

namespace headrace::analysis {

// How many threads took batches at the end, by the accounts; at least 1.
int RanksOf(const RunView& run);

// `workers` of all ranks together, shared out to each of them.
int EachRank(const RunView& run, int workers);

}  // namespace headrace::analysis
