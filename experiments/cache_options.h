// CacheOptions: which caches a plan or a tuner may choose, as people write them.
#pragma once
#include <string>
#include <vector>

#include "analysis/model/pipeline_model.h"
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

}  // namespace headrace::experiments
