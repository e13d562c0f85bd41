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

// Throws Error kUsage for tiers that cannot be.
void CheckCacheTiers(const CacheOptions& options);

// What is asked; throws Error kUsage for tiers that cannot be.
analysis::CacheQuestion CacheQuestionOf(const analysis::PipelineModel& model,
                                        const CacheOptions& options);
// Whether the run is of the reference reader, which has one cache at most.
bool IsReader(const analysis::PipelineModel& model);
// The operator after which the reader's [[cache]] keeps what leaves the stage; empty: it cannot.
std::string CacheAfter(const analysis::PipelineModel& model, size_t stage);

// What to give the reader's cache: where all is to be kept, half as much again as the estimate, as
// far as the tier and the memory budget go (PlannedCache::most_bytes); an entry that does not fit
// is not kept at all. At least 1.
uint64_t CacheBudgetMiB(const analysis::PlannedCache& cache);

}  // namespace headrace::experiments
