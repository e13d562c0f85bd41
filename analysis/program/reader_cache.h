// The cache of the reference reader: where its [[cache]] can stand, and how large to make it.
#pragma once
#include <cstdint>
#include <string>

#include "analysis/model/pipeline_model.h"
#include "analysis/program/candidate.h"

namespace headrace::analysis {

// Whether the run is one of the reference reader, which has one cache at most.
bool IsReader(const PipelineModel& model);
// The operator after which the reader's [[cache]] must be put to keep the stage's output; empty: it
// cannot keep that.
std::string CacheAfter(const PipelineModel& model, size_t stage);

// MiB to give to the reader's cache. If everything is to be kept: 1.5 times the estimate, as far as
// the tier and the memory budget allow (PlannedCache::most_bytes), because an entry that does not
// fit is not kept at all. At least 1.
uint64_t CacheBudgetMiB(const PlannedCache& cache);

}  // namespace headrace::analysis
