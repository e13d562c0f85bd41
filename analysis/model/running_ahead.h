// A stage that works ahead of the trainer without a bound: its results pile up in a queue that is
// as long as it likes (StageModel::taken_ratio).
#pragma once
#include <string>

#include "analysis/model/pipeline_model.h"

namespace headrace::analysis {

// The last such stage; empty: none.
std::string StageAhead(const PipelineModel& model);

// "Pool makes 3.4 results for each one that is taken, and nothing bounds how many wait: 540 do";
// empty: no stage does.
std::string AheadWords(const PipelineModel& model);

}  // namespace headrace::analysis
