// Where in Python the trainer's main thread was, by sampled stacks (docs/stacks.md): in its step,
// waiting for a batch, or making one itself. Threads' times cannot tell the last from the step.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "analysis/run/run_view.h"

namespace headrace::analysis {

struct PythonTime {
  // Of the main threads, without what is no part of a steady loop: imports, making a dataset, the
  // start and the end of workers.
  int64_t samples_count = 0;
  double seconds = 0;  // that they stand for
  double waits_s = 0;  // inside a loader's functions, at one that waits
  double loads_s = 0;  // inside a loader's functions, at any other
  // Of most of `loads_s`: what it does ("sampler", "unpickle", "getitem", ... as the import hook
  // names operators), and the program's own function there ("ByWeight.__iter__ (train.py:31)", else
  // the loader's).
  std::string operator_name, function;
};

// What the other threads of a process of Python did, by sampled stacks. Before
// CPython 3.14 the kernel knows them by one name only, py-spy each by its own.
struct PythonThreads {
  double idle_ratio = 0;  // of their time: in a queue's or a pool's wait for something to do
  // One that hardly ever waited while each of the others, if there are any, did: "_job_producer",
  // and its own function that most of its time was in. Empty: none.
  std::string busy_thread, busy_function;
  int64_t busy_samples_count = 0;
};

// Of the threads of that process but its main one; nothing where none was sampled.
std::optional<PythonThreads> LookAtPythonThreads(const RunView& run, int64_t process_id);

// Of the threads "MainThread" in these processes, as py-spy names them; nothing where no function
// of a loader was seen in them: then the samples cannot tell loading from the step.
std::optional<PythonTime> LookAtPython(const RunView& run, const std::vector<int64_t>& process_ids);

}  // namespace headrace::analysis
