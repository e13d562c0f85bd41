// What-if: a hypothetical pipeline in words, as people and scripts give it.
#pragma once
#include <string>
#include <vector>

#include "analysis/prediction.h"
#include "analysis/scale.h"

namespace headrace::analysis {

// Each of `words` is KEY=VALUE, applied in turn to what the run had:
//   STAGE.parallelism=N, STAGE.queue=N, pipeline.reorder_window=N (0: none), cores=C (as many as
//   the run had are the present ones, of which others used what they used)
//   NAME.cost=F   a stage, an operator, a lock, a device or `consumer` at F times its cost ("0.8",
//                 "80%", "-20%"); where several share a name and do not cost the same:
//                 stage:NAME.cost, operator:NAME.cost, resource:NAME.cost
// Throws Error kUsage, naming what there is, for other keys and for values that cannot be.
Variant ParseWhatIf(const PipelineModel& model, const std::vector<std::string>& words);

// Predictor::Rate at a change, seen from what was observed: `before` (the rate it gives the run as
// it was) becomes `seen`, far from it the rate stays what it is, and between them a better rate is
// never corrected to a lower one.
double CorrectedRate(double rate, double before, double seen);

// The prediction for `what`, with no step to what was observed: a change that changes nothing is
// predicted to be just that, and one that moves the rate little differs from it by little. Knows of
// memory bandwidth, too, where it was measured: traffic goes with the CPU time of a batch. Never
// more than the least bound, but as far as what was observed was beyond it. Plans are predicted by
// it as well.
Prediction PredictChange(const PipelineModel& model, const Predictor& predictor,
                         const Variant& what);

}  // namespace headrace::analysis
