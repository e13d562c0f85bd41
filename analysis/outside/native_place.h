// The function of a compiled program in which threads that limit compute, by sampled native stacks
// (docs/stacks.md): their names alone say who computes, and not what.
#pragma once
#include <optional>
#include <string>

#include "analysis/outside/units.h"
#include "analysis/run/run_view.h"

namespace headrace::analysis {

// Of the threads of a unit that do most of its work: the innermost function that is no part of a
// language's run-time and, with its callees, holds most of their samples on the CPU. "Augment",
// "Parser::Next"; without arguments. Nothing where it is main itself, few were sampled, or Python's
// interpreter ran in them: its functions say more (python_places.h).
std::optional<std::string> PlaceOnCpu(const RunView& run, const Outside& outside,
                                      const OutsideUnit& unit);

}  // namespace headrace::analysis
