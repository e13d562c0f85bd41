// What the emitters share: what a run shows about its loading processes, and how many of them its
// cores and memory allow.
#pragma once
#include <string>

#include "analysis/advice/emit/emit.h"
#include "analysis/outside/outside.h"

namespace headrace::analysis {

// Worker processes of a loader.
struct WorkerProcesses {
  size_t started = 0;  // in the run
  // Mean over workers of each one's peak resident memory; none: not measured.
  std::optional<double> mean_bytes;
  std::optional<double> other_bytes;  // peak resident memory of all other processes, summed
};

// The largest number of these processes that were alive at the same time. (A loader that ends its
// workers after each epoch starts new ones, so the total number would be too high.)
size_t AliveAtOnce(const RunView& run, const std::vector<int64_t>& processes);

// Resident memory of the worker processes with these ids (ProcessRow::process_id), and of all
// others.
WorkerProcesses ResidentOf(const RunView& run, const std::vector<int64_t>& workers);

// Ids of the processes with accounts whose parent process has accounts, too.
std::vector<int64_t> AccountedWorkers(const RunView& run);

// `count`, or fewer where memory does not suffice. The memory is the budget, else the run's limit,
// less what other processes hold. Writes the reason into `note` when it returns fewer.
int WithinMemory(const RunView& run, const Budget& budget, const WorkerProcesses& workers,
                 int count, std::string* note);

// Fills in the memory that workers take now and would take if there were `count` of them.
void AddMemory(const WorkerProcesses& workers, double now, int count, Emitted* emitted);

// What the emitters use of a run that was seen from outside.
struct LoaderSeen {
  Outside outside;
  OutsideLimit limit = OutsideLimit::kNone;  // kNone: undecided
  const OutsideUnit* producer = nullptr;     // does most of the work; null: one thread does all
  double threads = 0;                        // of the producer, running at the same time
  double stall = 0;
  std::optional<double> free_cores;  // of the budget's cores, else of the run's
  std::string waited;                // "the trainer waits 74.5 % of the time [68, 78]"
};

// Throws Error kInconclusive where there is no verdict.
LoaderSeen SeeLoader(const RunView& run, const Budget& budget);

// How many producers are enough, and why: more while they are the limit and cores are free, fewer
// when they wait for the consumer. Without a reason to change, `count` is `threads`, rounded.
struct ProducerCount {
  int count = 0;
  bool changes = false;
  std::string why;
  std::optional<double> at_most;  // times the rate
};
ProducerCount CountProducers(const LoaderSeen& seen, const std::string& what);

// Where producer and consumer wait for each other in turn: the share of the producers' time in
// which they wait for the consumer. None: they do not take turns, or it is not known.
std::optional<double> WaitsInTurn(const LoaderSeen& seen);

}  // namespace headrace::analysis
