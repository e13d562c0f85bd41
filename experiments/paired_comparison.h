// A comparison whose runs are made for it, in interleaved pairs: recorded as it goes, and ended
// early where the answer is sure. Pairs that ran before an interrupt stay in the database, where
// their runs can be compared as two sets.
#pragma once
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "dashboards/comparison.h"
#include "experiments/ab_runner.h"
#include "experiments/compared_sides.h"
#include "experiments/comparison_terms.h"

namespace headrace::experiments {

struct PairedOptions {
  ComparedSides sides;
  ComparisonTerms terms;
  AbOptions runs;           // without its sides and `finished`, which are set here
  bool early_stop = false;  // ends as soon as the answer is sure
  std::string repeat;       // the command that makes the same comparison, without --pairs
};

struct PairedEnd {
  size_t pairs = 0;  // that ran
  // None: it was interrupted; the record says so, and what ran is kept.
  std::optional<dashboards::ComparisonPage> page;
};

// How many pairs fit into `budget_ns` where each run takes `duration_ns` and what it takes to load
// its probes; 1 at least.
size_t PairsWithin(int64_t budget_ns, int64_t duration_ns);

// The name of the comparison and the beginning of its runs' names, of which a tag can be made: as
// it was asked for, or, where that is empty, by the time of day.
std::string PairsName(const std::string& asked);

// A seed for whoever asks for none.
uint64_t SeedFromClock();

// Runs the pairs and records them with the comparison in the database of `runs`. Throws Error: that
// of a run that failed, with its side in front; kBadData where the first pair shows sides that are
// not comparable, unless it is forced. The record then says that the comparison failed.
PairedEnd ComparePairs(const PairedOptions& options);

}  // namespace headrace::experiments
