// What can be wrong with a table for a pipeline, or with a pipeline for a table: said before
// anything runs. All throw Error.
#pragma once
#include <string>
#include <vector>

#include "reader/pipeline/spec.h"
#include "reader/pipeline/split.h"

namespace headrace::reader {

// The columns that a batch has after `extract`, as the transforms' check wants them.
std::vector<AvailableColumn> ProjectedColumns(const Schema& schema,
                                              const dwrf::Projection& projection);

// Encrypted columns of the projection without a key.
struct LockedColumns {
  std::vector<std::string> names;
  std::string why;  // of the first
};

// Encrypted columns of the projection need their key, and an operator that uses it. Returns, with
// on_locked = "null", the columns that some file has no key for, and why for the first one.
LockedColumns CheckEncryption(const Table& table, const PipelineSpec& spec);

// Filters are on dense features and plain columns.
void CheckFilters(const Schema& schema, const PipelineSpec& spec);

// Every slice is a place in ordered queues and a batch's fields in memory: there is a bound to
// them, in a stripe and, by CheckPlaces, in what all threads of a stage hold.
void CheckSlices(const Table& table, const PipelineSpec& spec);
void CheckPlaces(const Table& table, const PipelineSpec& spec, const StageSpec& stage,
                 uint32_t parallelism);

}  // namespace headrace::reader
