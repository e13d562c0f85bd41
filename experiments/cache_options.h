// CacheOptions: which caches a plan or a tuner may choose, as people write them.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "analysis/model/pipeline_model.h"
#include "analysis/program/allocation.h"
#include "analysis/program/cache_choice.h"

namespace headrace::experiments {

struct CacheOptions {
  std::vector<std::string> tiers;  // "memory=8GiB", "disk=200GiB@1.5GB/s"
  double epoch_rows = 0, epochs = 0;
};

// Throws Error kUsage for impossible tiers.
void CheckCacheTiers(const CacheOptions& options);

// The options as a question for the planner; throws Error kUsage for impossible tiers.
analysis::CacheQuestion CacheQuestionOf(const analysis::PipelineModel& model,
                                        const CacheOptions& options);
// Whether the run is one of the reference reader, which has one cache at most.
bool IsReader(const analysis::PipelineModel& model);
// The operator after which the reader's [[cache]] must be put to keep the stage's output; empty: it
// cannot keep that.
std::string CacheAfter(const analysis::PipelineModel& model, size_t stage);

// MiB to give to the reader's cache. If everything is to be kept: 1.5 times the estimate, as far as
// the tier and the memory budget allow (PlannedCache::most_bytes), because an entry that does not
// fit is not kept at all. At least 1.
uint64_t CacheBudgetMiB(const analysis::PlannedCache& cache);

}  // namespace headrace::experiments
