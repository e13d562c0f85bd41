// Which parts of a report are wrong because of losses, and in which direction.
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "analysis/run/run_view.h"

namespace headrace::dashboards {

// What a loss of that name (loss_summary.what) affects: "page faults: too low". Never empty.
std::string_view AffectedBy(std::string_view what);

// Whether total_count is the total, lost and kept, of the things that lost_count counts.
bool IsTotal(const analysis::LossRow& loss);

// One line for each thing affected, with what was lost and how much of it:
// "page faults: too low (17787 faults, 12 threads)". The largest losses first; empty without any.
std::vector<std::string> LossLines(const std::vector<analysis::LossRow>& losses);

}  // namespace headrace::dashboards
