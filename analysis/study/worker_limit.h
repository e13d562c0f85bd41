// What limits a worker, for the studies: in their words, and without knowing what was imposed on
// it.
#pragma once
#include <optional>
#include <string>

#include "analysis/run/run_view.h"

namespace headrace::analysis {

// What limits the worker, found without knowing the conditions that were imposed on it: by the rows
// of FindBottleneck or, where none of these explains the rate, by the share of time in which the
// source waited for memory although the queue behind it had room.
struct WorkerLimit {
  std::string resource;  // "cores", "nic_ingress", "storage", "memory_capacity", "stage", ...;
                         // "undecided"
  std::string words;     // "the cores"
  std::string evidence;  // a sentence with the figures
  double probability = 0;
  bool decided = false;
};
WorkerLimit FindWorkerLimit(const RunView& run);

// The share of its time in which the source waited for memory, that is, for room while the queue
// behind it was not full. Empty where the run has no memory budget, or no such source.
std::optional<double> HeldForMemory(const RunView& run);

}  // namespace headrace::analysis
