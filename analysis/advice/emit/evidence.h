// What the emitters share: what a run shows of the processes that load, and of the numbers that its
// cores and memory allow.
#pragma once
#include <string>

#include "analysis/advice/emit/emit.h"
#include "analysis/outside/outside.h"

namespace headrace::analysis {

// Worker processes of a loader.
struct WorkerProcesses {
  size_t started = 0;                 // in the run
  std::optional<double> mean_bytes;   // of the most each had resident; none: not measured
  std::optional<double> other_bytes;  // of all other processes, likewise
};

// The most of these processes that were alive at one time: a loader whose workers end with each
// epoch starts as many again.
size_t AliveAtOnce(const RunView& run, const std::vector<int64_t>& processes);

// Of processes with these ids (ProcessRow::process_id).
WorkerProcesses ResidentOf(const RunView& run, const std::vector<int64_t>& workers);

// Children with accounts of a process with accounts.
std::vector<int64_t> AccountedWorkers(const RunView& run);

// `count` as far as memory allows: the budget, else the run's limit, less what other processes
// have. Writes why into `note` when it is fewer.
int WithinMemory(const RunView& run, const Budget& budget, const WorkerProcesses& workers,
                 int count, std::string* note);

// Fills in what workers take now and at `count`.
void AddMemory(const WorkerProcesses& workers, double now, int count, Emitted* emitted);

// What of a run seen from outside the emitters go by.
struct LoaderSeen {
  Outside outside;
  OutsideLimit limit = OutsideLimit::kNone;  // kNone: undecided
  const Unit* producer = nullptr;            // does most of the work; null: one thread does all
  double threads = 0;                        // of it
  double stall = 0;
  std::optional<double> free_cores;  // of the budget's cores, else of the run's
  std::string waited;                // "the trainer waits 74.5 % of the time [68, 78]"
};

// Throws Error kInconclusive where there is no verdict.
LoaderSeen SeeLoader(const RunView& run, const Budget& budget);

// How many of the producers would do, and why: more while they limit and cores are free, fewer
// when they wait for the consumer. `count` is `threads` rounded when nothing says otherwise.
struct ProducerCount {
  int count = 0;
  bool changes = false;
  std::string why;
  std::optional<double> at_most;  // times the rate
};
ProducerCount CountProducers(const LoaderSeen& seen, const std::string& what);

// Producer and consumer wait for each other in turn: the share of the producers' time that they
// wait for the consumer; none: they do not, or it is not known.
std::optional<double> WaitsInTurn(const LoaderSeen& seen);

}  // namespace headrace::analysis
