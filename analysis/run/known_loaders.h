// Loaders of other people's programs that the Python package accounts for: what the settings of
// their stages are called in the program. Adding one is a line of the table.
#pragma once
#include <string>

#include "analysis/run/run_view.h"

namespace headrace::analysis {

struct KnownLoader {
  const char* stage;      // as the accounts name it; "tf.data *": and whatever begins so
  const char* setting;    // what sets its number of workers: "num_workers"
  const char* unit;       // what one is: "process"
  const char* unit_many;  // "processes"
  // To be written where the trainer's own thread makes the batches, with a place for the number;
  // null: as the setting.
  const char* first = nullptr;
  // What the names of its stages begin with, where the setting is one of each: it is called by the
  // rest, "MapBatches(Decode) concurrency".
  const char* before = nullptr;
  // Its units share a pool of as many threads as there are cores, unless this says otherwise.
  const char* pool = nullptr;
  const char* queue = nullptr;  // what sets the size of its queue; null: its stage says so
  // Works on the trainer's thread now; the first that its setting adds is a process.
  bool adds_processes = false;
  // What to do where such a stage is the limit and no setting helps; null: make it cheaper.
  const char* cheaper = nullptr;
  // A pool of Python's, of processes: tasks and results are pickled.
  bool is_process_pool = false;
};

// Null where the run is of a pipeline file, or its stage is of nobody we know.
const KnownLoader* FindKnownLoader(const RunView& run, const std::string& stage);

// KnownLoader::is_process_pool; false for a stage of nobody we know.
bool IsProcessPool(const RunView& run, const std::string& stage);

// "2 processes", "1 thread": so many of what works in that stage.
std::string WorkersOfStage(const RunView& run, const std::string& stage, int count);

}  // namespace headrace::analysis
