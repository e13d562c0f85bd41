// What limits an instrumented run, in words: the lines "limit" and "why" of its first page.
#pragma once
#include <string>

#include "analysis/model/bottleneck.h"

namespace headrace::dashboards {

// Whether the trainer computes at all. (A pipeline may be run without one, to see how fast it is
// alone.)
bool HasTrainer(const analysis::PipelineModel& model);

// The limit, and how sure that is: "decode, operator extract (probability > 0.99)".
std::string LimitLine(const analysis::PipelineModel& model, const analysis::Bottleneck& bottleneck);

// What the limit and the rows beside it allow, what was measured, and what is lost.
std::string WhyLine(const analysis::PipelineModel& model, const analysis::Bottleneck& bottleneck);

// Whether the limit line calls the trainer's own thread the trainer, as its step takes most of it.
bool IsTrainersThread(const analysis::PipelineModel& model, const analysis::Bottleneck& bottleneck);

}  // namespace headrace::dashboards
