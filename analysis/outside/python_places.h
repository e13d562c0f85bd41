// Where in the program's own files an operator of the import hook, or the trainer's step, spends
// its time, by sampled Python stacks (docs/stacks.md): the name of an operator says what kind of
// work limits, its line which.
#pragma once
#include <optional>

#include "analysis/outside/python_lines.h"
#include "analysis/run/run_view.h"

namespace headrace::analysis {

// Of an operator that the hook accounts: the innermost function of the program that was seen in it.
std::optional<PythonPlace> PlaceOf(const RunView& run, const OperatorRow& op);

// Of the step of the trainers: what the loop that trains calls, or does itself.
std::optional<PythonPlace> PlaceOfStep(const RunView& run);

}  // namespace headrace::analysis
