// By what a program loads its batches, where that is seen from outside.
#pragma once
#include <vector>

#include "analysis/outside/threads.h"
#include "analysis/outside/units.h"
#include "analysis/run/run_view.h"

namespace headrace::analysis {

// Whether functions of a library that trains (torch, TensorFlow, Keras, JAX) are in sampled Python
// stacks, even if it was only imported.
bool UsesTrainingLibrary(const RunView& run);

// By the names of threads and by sampled Python stacks; without either, by the command line.
// `groups`: the threads that were seen. `uses_training_library`: UsesTrainingLibrary.
OutsideFlavour FlavourOf(const RunView& run, const std::vector<ThreadGroup>& groups,
                         bool uses_training_library);

}  // namespace headrace::analysis
