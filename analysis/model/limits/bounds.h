// Bounds: the rows of a pipeline, of all kinds: all of them, the smallest bound, and the row to
// blame.
#pragma once
#include <string>
#include <vector>

#include "analysis/model/limits/limit.h"

namespace headrace::analysis {

// All rows of `model` at these settings and demands, in fixed order.
std::vector<Limit> Bounds(const PipelineModel& model, const Demands& demands,
                          const Settings& settings);

// The smallest of the true upper bounds: rows whose bound is only an estimate (order) are left out.
// Infinite where nothing is bounded.
double LeastBound(const std::vector<Limit>& limits);

// Index of the row to blame: the one with the smallest bound, with one exception. If that is a
// stage which spends nearly all its time holding a resource, or does nearly all of the cores' work,
// and the row of that resource or of the cores is close behind, then that shared row is blamed:
// more threads for the stage would gain next to nothing.
size_t BindingRow(const PipelineModel& model, const Demands& demands,
                  const std::vector<Limit>& limits);

// Whether the bound of `limit` follows from that of `first`, the row to be blamed: a stage whose
// threads hold the lock that limits, the stage whose elements leave in order. `least`: the smallest
// bound of all.
bool IsWithin(const PipelineModel& model, const Limit& first, const Limit& limit, double least);

// The load on each shared row, in the order of Bounds; rows without load are left out.
std::vector<SharedLoad> SharedLoads(const PipelineModel& model, const Demands& demands);

// Rows that do not come from a model: the consumer's with a target rate as its bound, and a stage's
// without a bound, only to name the stage.
Limit LimitOfConsumer(double batches_per_second);
Limit LimitOfStage(const PipelineModel& model, size_t stage);

// The row `of`, the consumer's or its thread's, as that of the interpreter's lock that its step
// waits for: with the same bound.
Limit LimitOfHeldStep(const Limit& of);

}  // namespace headrace::analysis
