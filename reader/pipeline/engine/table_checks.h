// Checks that a table and a pipeline fit together, before anything runs. All throw Error.
#pragma once
#include <string>
#include <vector>

#include "reader/pipeline/spec.h"
#include "reader/pipeline/split.h"

namespace headrace::reader {

// The columns that a batch has after `extract`, for the check of the transforms.
std::vector<AvailableColumn> ProjectedColumns(const Schema& schema,
                                              const dwrf::Projection& projection);

// The transforms of the pipeline, whose errors name its file.
TransformPlan PlanTransforms(const PipelineSpec& spec);
// The columns that a batch has behind the transforms, in the order in which it has those of a kind.
// Throws Error kUsage where a transform does not fit the table.
std::vector<AvailableColumn> FinalColumns(const Schema& schema, const PipelineSpec& spec);

// Encrypted columns of the projection without a key.
struct LockedColumns {
  std::vector<std::string> names;
  std::string why;  // of the first
};

// Checks that encrypted columns of the projection have their key, and an operator that uses it.
// With on_locked = "null", returns the columns that some file has no key for, and the reason for
// the first one.
LockedColumns CheckEncryption(const Table& table, const PipelineSpec& spec);

// Checks that filters are on dense features and plain columns.
void CheckFilters(const Schema& schema, const PipelineSpec& spec);

// Check the number of slices, because every slice takes a place in ordered queues, and memory for a
// batch's fields: CheckSlices in one stripe, CheckPlaces over all threads of a stage.
void CheckSlices(const Table& table, const PipelineSpec& spec);
void CheckPlaces(const Table& table, const PipelineSpec& spec, const StageSpec& stage,
                 uint32_t parallelism);

}  // namespace headrace::reader
