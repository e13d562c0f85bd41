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

// Of the time on a CPU of those of the unit that limits, the share that goes into memory that was
// asked for anew: the kernel clears it when it is first touched, and takes it back. Nothing where
// that is less than kNewMemory, where these threads do not mostly compute, or where another limit
// than what they compute is found, or its functions say more.
std::optional<double> NewMemoryRatio(const RunView& run, const Outside& outside);

}  // namespace headrace::analysis
