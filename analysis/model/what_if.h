// What-if: a hypothetical pipeline in words, as people and scripts give it.
#pragma once
#include <string>
#include <vector>

#include "analysis/model/scale.h"

namespace headrace::analysis {

// Each of `words` is KEY=VALUE, applied in turn to what the run had:
//   STAGE.parallelism=N, STAGE.queue=N, pipeline.reorder_window=N (0: none), cores=C (if C is
//   what the run had: those cores, less what other programs used of them)
//   NAME.cost=F   a stage, an operator, a lock, a device or `consumer` at F times its cost ("0.8",
//                 "80%", "-20%"); where several share a name and do not cost the same:
//                 stage:NAME.cost, operator:NAME.cost, resource:NAME.cost
// Throws Error kUsage, naming what there is, for other keys and for values that cannot be.
Variant ParseWhatIf(const PipelineModel& model, const std::vector<std::string>& words);

}  // namespace headrace::analysis
