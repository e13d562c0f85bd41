// Several ranks of a job that were recorded together from outside: each waits in its step for the
// slowest, so that what limits the job limits that one, and their sum shows neither.
#pragma once
#include <cstdint>
#include <optional>
#include <vector>

#include "analysis/outside/units.h"
#include "analysis/run/run_view.h"

namespace headrace::analysis {

struct RanksSeen {
  RankSeen seen;
  std::vector<int64_t> pids;
};

// Known by threads that exchange gradients in several processes of one name, and by waits for them.
// Nothing: there are none.
std::optional<RanksSeen> FindRanks(const RunView& run);

// Where ranks wait about as long for each other: what share of its time each waits for gradients.
std::optional<double> ExchangeRatio(const RanksSeen& ranks);

// The run as if of these processes and their children only `pid` and its own had been recorded; all
// that belongs to none of them is left.
RunView OfOneRank(const RunView& run, const std::vector<int64_t>& ranks, int64_t pid);

}  // namespace headrace::analysis
