// Where in Python the trainer's main thread was, by sampled stacks (docs/stacks.md): in its step,
// waiting for a batch, or making one itself. Threads' times cannot tell the last from the step.
#pragma once
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "analysis/outside/beside_training.h"
#include "analysis/outside/python_lines.h"
#include "analysis/run/run_view.h"

namespace headrace::analysis {

struct PythonTime {
  double sampled_s = 0;  // all that was seen of the main threads
  // Of that, in the loop that trains (where the program's own files were found, its
  // loops are known) or else without what is no part of one: imports, making a dataset, the start
  // and the end of workers.
  int64_t samples_count = 0;
  double seconds = 0;     // that they stand for; the sum of the next four
  double receives_s = 0;  // of the next: in reading what another process sent, or waiting for it
  double waits_s = 0;     // for a loader, a queue or a generator of the program
  double loads_s = 0;     // in a loader, a generator that the loop goes over, or a library for data
  double step_s = 0;      // in a library that trains
  double unknown_s = 0;   // in what may be either: functions of the program
  // Of `loads_s` and `step_s` what only the name of a function says ("load_batch", "train_step").
  double loads_by_name_s = 0, step_by_name_s = 0;
  bool is_loop_known = false;  // of the program's own: what comes before it is left out
  // A library's loader was seen: then what is unknown is, by all means, done with its batches.
  bool has_loader = false;
  // Of most of `loads_s`: what a loader does ("sampler", "unpickle", "getitem", ... as the import
  // hook names operators; empty: no loader) and the program's own function there
  // ("ByWeight.__iter__ (train.py:31)", else the loader's).
  std::string operator_name, function;
  std::map<std::string, double> operators_s;    // what `loads_s` is of, by such an operator
  std::string receive_function;                 // of most of `receives_s`
  std::string step_function, unknown_function;  // of most of `step_s`, of `unknown_s`
  // Of both together, as deep as the program goes, or where it is in none of its functions, a
  // library.
  std::optional<PythonPlace> step_place;
};

// What the main threads of trainers do beside training. Of fit() of Keras, which takes batches and
// trains in one function, it is known as well: what it calls back.
std::optional<BesideTraining> LookBesideTraining(const RunView& run,
                                                 const std::vector<int64_t>& process_ids);

// What they load by themselves, outside of every loader: what makes a batch of a loader's rows.
// Nothing where that is hardly worth a word of their time without waits and loaders.
std::optional<BesideTraining> LookAtOwnLoading(const RunView& run,
                                               const std::vector<int64_t>& process_ids);

// The operator that takes longest beside `operator_name`, and more than half as long; empty: none
// does, or that one is not known.
std::string OperatorBeside(const PythonTime& time);

// The samples cannot tell reading a batch from waiting for it. `blocked_ratio`: the share of its
// time in which the thread was off the CPU. What it says to be a wait beyond that was receiving:
// loading.
void CountReceiving(double blocked_ratio, PythonTime* time);

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
// of the program, of a loader or of a library that trains was seen in them: then the samples cannot
// tell loading from the step. `workers_follow`: workers end and others take their places, so that
// starting them is part of the loading, not of what comes before it.
std::optional<PythonTime> LookAtPython(const RunView& run, const std::vector<int64_t>& process_ids,
                                       bool workers_follow);

}  // namespace headrace::analysis
