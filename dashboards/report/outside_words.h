// The verdict block of a run that was seen from outside.
#pragma once
#include <string>

#include "analysis/outside.h"
#include "dashboards/report/report.h"

namespace headrace::dashboards {

// "the trainer" / "the consumer", "the workers" / the unit's own name.
std::string ConsumerWord(const analysis::Outside& seen);
std::string UnitWord(const analysis::Outside& seen, size_t unit);

// Adds sentences, facts (keys as in a verdict from accounts) and the table of findings. `seen` must
// not be withheld.
void AddOutsideVerdict(const analysis::RunView& run, const analysis::Outside& seen,
                       Section* section);

}  // namespace headrace::dashboards
