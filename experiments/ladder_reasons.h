// Why a rung of the ladder gains what it gains, in a sentence, from the accounts of its runs. Null:
// no factor was published.
#pragma once
#include <string>

#include "experiments/ladder_accounts.h"
#include "experiments/ladder_rungs.h"

namespace headrace::experiments {

struct MemoryBudget {
  double bytes = 0, unbounded_bytes = 0;  // of the process
  std::string unbounded_rung;             // that takes so much without one
};

// What changed in the CPU time of a row, by operator; and what the published factor would take.
std::string ExplainReaderCpu(const RungRuns& before, const RungRuns& after, double ratio,
                             const PublishedFactor* published);
std::string ExplainTrainerCpu(const RungRuns& before, const RungRuns& after, double ratio,
                              const PublishedFactor* published);
// Bytes, requests and the head's moves.
std::string ExplainStorage(const RowAccounts& a, const RowAccounts& b, double ratio,
                           const PublishedFactor* published);
// What a memory budget does to each side.
std::string ExplainMemory(const RungRuns& before, const RungRuns& after, const MemoryBudget& budget,
                          int cores);
std::string ExplainBytes(const RowAccounts& a, const RowAccounts& b);

}  // namespace headrace::experiments
