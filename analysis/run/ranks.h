// Ranks: trainers of one job, each with a loader of its own, recorded together.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "analysis/run/run_view.h"

namespace headrace::analysis {

// How many threads took batches at the end, by the accounts; at least 1.
int RanksOf(const RunView& run);

// `workers` of all ranks together, shared out to each of them.
int EachRank(const RunView& run, int workers);

// A process that took batches, from its second reading on.
struct Rank {
  int64_t pid = 0;
  std::string process;
  double steps = 0, wait_s = 0, compute_s = 0;
  double wait_ratio() const;   // share of its steps' time; 0 without any
  double steps_per_s() const;  // while it took them; 0 without any
};

// Those of the run, longest wait first; empty where fewer than two took batches.
std::vector<Rank> Ranks(const RunView& run);

// A rank that holds up the others. All took equally many batches, so that each of their steps takes
// what it takes the slowest: it is the one that waits for its batches clearly longer, while the
// others, which wait little for theirs, wait for it within their steps.
struct SlowRank {
  Rank rank;
  size_t ranks = 0;              // with it
  double others_wait_ratio = 0;  // the longest of theirs
};

// Empty: none is clearly slower, the others are highly input-bound as well, they do not step
// together (a trainer and its evaluation, say), or there are not two with enough batches to tell.
std::optional<SlowRank> SlowestRank(const std::vector<Rank>& ranks);

// "the slowest of 4 ranks, pid 4321 (python): it waits 62.0 % of each step, the others 8.1 % at
// most".
std::string Words(const SlowRank& slow);

// "waits 62.0 % of each step, the others 8.1 % at most"
std::string WaitWords(const SlowRank& slow);

}  // namespace headrace::analysis
