// What work may cost less once threads that mostly waited are busy: those that compute for a moment
// now and then find their caches taken by others and their core asleep. How much is not known from
// the run; a predicted interval holds all of it.
#pragma once
#include "analysis/model/pipeline_model.h"

namespace headrace::analysis {

// The least that work may cost at `rate_ratio` times the present rate, as a share of what it costs
// now, where its threads compute `duty` of their time; 1 where they are busy already.
double LeastCostOnceBusy(double duty, double rate_ratio);

// `demands`, those of a variant of the model, with the CPU time of each stage's operators at the
// least that they may cost at `rate_ratio` times the recorded rate; and, where stages share a pool
// of threads, with as little CPU time outside operators as the pool may need.
Demands OnceBusy(const PipelineModel& model, const Demands& demands, double rate_ratio);

}  // namespace headrace::analysis
