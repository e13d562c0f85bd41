// What a run's first page (page.h) says: what limits, how sure that is, and what it depends on.
#pragma once
#include <optional>
#include <string>

#include "analysis/advice/statements.h"
#include "analysis/model/bottleneck.h"
#include "analysis/run/run_view.h"
#include "dashboards/report/page.h"

namespace headrace::dashboards {

// See OtherLoad.
std::optional<OtherLoad> OtherLoadOf(const analysis::RunView& run,
                                     const analysis::Statements& statements);

// The page of a run, without the lines "cost" and "more". Never throws.
FirstPage MakeFirstPage(const analysis::RunView& run, const analysis::Statements& statements);

}  // namespace headrace::dashboards
