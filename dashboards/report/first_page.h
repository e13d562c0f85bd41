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

// Whether the trainer computes at all. (A pipeline may be run without one, to see how fast it is
// alone.)
bool HasTrainer(const analysis::PipelineModel& model);

// The limit, and how sure that is: "decode, operator extract (probability > 0.99)".
std::string LimitLine(const analysis::PipelineModel& model, const analysis::Bottleneck& bottleneck);

// The page of a run, without the lines "cost" and "more". Never throws.
FirstPage MakeFirstPage(const analysis::RunView& run, const analysis::Statements& statements);

}  // namespace headrace::dashboards
