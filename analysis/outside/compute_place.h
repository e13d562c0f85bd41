// Where in the program the threads compute that limit it.
#pragma once
#include <string>

#include "analysis/outside/units.h"
#include "analysis/run/run_view.h"

namespace headrace::analysis {

// Of the first finding of `outside`, by whichever stacks say most: those of Python, of workers or
// of processes that feed the trainer, else native ones. "features (train.py:20)", "Augment". Empty:
// not known, or it is no computing that limits.
std::string ComputePlace(const RunView& run, const Outside& outside);

}  // namespace headrace::analysis
