// Validation between steps: a trainer may take longer to measure its model than to train it, and
// its functions say so, as both compute in the same layers.
#pragma once
#include <optional>
#include <vector>

#include "analysis/outside/python_lines.h"

namespace headrace::analysis {

// Of a trainer's main thread: the function that validates, and its share of the time in known
// functions, those that load or train; nothing where that is less than half, where it is seldom
// seen, or where the program only validates. A function of the program must lead to a model's
// layers, and loop or lead to a loader.
std::optional<PythonPlace> FindValidation(const std::vector<WeighedStack>& stacks);

}  // namespace headrace::analysis
