// Where in the program's own files an operator of the import hook, the trainer's step, or PyTorch's
// workers spend their time, by sampled Python stacks (docs/stacks.md): the name of an operator says
// what kind of work limits, its line which.
#pragma once
#include <cstdint>
#include <optional>
#include <vector>

#include "analysis/outside/beside_training.h"
#include "analysis/outside/python_activity.h"
#include "analysis/outside/python_lines.h"
#include "analysis/run/run_view.h"

namespace headrace::analysis {

// Of an operator that the hook accounts: the innermost function of the program that was seen in it.
// Of one of tf.data: the function that it calls for most of its time.
std::optional<PythonPlace> PlaceOf(const RunView& run, const OperatorRow& op);

// What workers of PyTorch's DataLoader do, beside waiting for an index.
struct WorkerTime {
  // Of it, before they fetch: their part of a fork or an import, and worker_init_fn.
  double start_ratio = 0;
  std::optional<PythonPlace> place;  // of the program
};

// What that operator's samples are at for the most part; nothing: there are few of them, or it is
// not clear. What Python threads do for an operator of tf.data counts as its own.
std::optional<Activity> ActivityIn(const RunView& run, const OperatorRow& op);

// Whether the threads beside the first one mostly compute in processes in which the operator
// waits: by samples they are at work, and they use a CPU meanwhile. The kernel may know them and
// idle ones by one name.
bool WorksInOwnThreads(const RunView& run, const OperatorRow& op);

// Of these processes; nothing where they were hardly sampled.
std::optional<WorkerTime> LookAtWorkers(const RunView& run,
                                        const std::vector<int64_t>& process_ids);

// Of processes of any kind that feed a trainer: where their main threads are while they do not
// wait. `computes`: they are mostly on a CPU, so that a pool's process in the function that takes
// tasks unpickles one.
std::optional<PythonPlace> PlaceOfFeeders(const RunView& run,
                                          const std::vector<int64_t>& process_ids, bool computes);

// Of the step of the trainers: what the loop that trains calls, or does itself.
std::optional<PythonPlace> PlaceOfStep(const RunView& run);

// Whether trainers are processes of Python.
bool TrainsInPython(const RunView& run);

// Whether trainers are processes of Python whose functions were hardly seen: what is called a
// step may also be validation, saving or loading that no operator has.
bool IsStepUnseen(const RunView& run);

// What the trainers do beside training by their functions, where it is worth a word.
std::optional<BesideTraining> BesideTrainingByFunctions(const RunView& run);

}  // namespace headrace::analysis
