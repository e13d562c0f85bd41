// Processes of one kind of which one works all the time while the others mostly wait. Where their
// results are taken in turn, that one sets the rate, whatever the mean over all of them says.
#pragma once
#include <cstddef>
#include <optional>
#include <set>
#include <string>

#include "analysis/outside/units.h"
#include "analysis/run/run_view.h"

namespace headrace::analysis {

// Of the first threads of the unit's processes, in these slices of the run. `prefix`: what the
// metrics of their times begin with ("", "sampled_"). Empty: the unit is not of several processes,
// how long they wait is not known, or they do not differ so much.
std::optional<UnevenProcesses> FindUnevenProcesses(const RunView& run, const Outside& seen,
                                                   const OutsideUnit& unit,
                                                   const std::set<int64_t>& slices,
                                                   const std::string& prefix);

// How many workers of PyTorch's DataLoader of this kind ended soon without having done anything:
// they have no data. 0 for others.
size_t CountIdleProcesses(const RunView& run, const ProcessKind& kind);

}  // namespace headrace::analysis
