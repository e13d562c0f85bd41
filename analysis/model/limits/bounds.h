// Bounds: the rows of a pipeline, all kinds together: which there are, which is the smallest, which
// is to blame.
#pragma once
#include <string>
#include <vector>

#include "analysis/model/limits/limit.h"

namespace headrace::analysis {

// All rows of `model` at these settings and demands, in fixed order.
std::vector<Limit> Bounds(const PipelineModel& model, const Demands& demands,
                          const Settings& settings);

// The smallest bound of rows that nothing can exceed: those that are estimates themselves (order)
// are left out. Infinite where nothing bounds.
double LeastBound(const std::vector<Limit>& limits);

// Index of the row that is to be blamed. It is the smallest bound, except that a stage whose time
// is nearly all spent holding a resource, or nearly all of the cores' work, is limited by that
// shared row when the row follows closely: more threads there would gain next to nothing.
size_t BindingRow(const PipelineModel& model, const Demands& demands,
                  const std::vector<Limit>& limits);

// Whether the bound of `limit` follows from that of `first`, the row to be blamed: a stage whose
// threads hold the lock that limits, the stage whose elements leave in order. `least`: the smallest
// bound of all.
bool IsWithin(const PipelineModel& model, const Limit& first, const Limit& limit, double least);

// Of each row that is shared, in the order of Bounds; without those of which nothing is taken.
std::vector<SharedLoad> SharedLoads(const PipelineModel& model, const Demands& demands);

// Rows that no model was asked for: the consumer's at a rate that is wanted of it, a stage's as one
// that is pointed at, without a bound.
Limit LimitOfConsumer(double batches_per_second);
Limit LimitOfStage(const PipelineModel& model, size_t stage);

}  // namespace headrace::analysis
