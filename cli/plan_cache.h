// headrace plan --cache: whether to keep a stage's output between epochs, and where, beside the
// plan that chooses it.
#pragma once
#include <string>
#include <vector>

#include "analysis/model/pipeline_model.h"
#include "analysis/program/allocation.h"
#include "analysis/program/cache_choice.h"

namespace headrace::cli {

class CommandLine;

struct CacheOptions {
  std::vector<std::string> tiers;  // "memory=8GiB", "disk=200GiB@1.5GB/s"
  double epoch_rows = 0, epochs = 0;
};

// --cache, --epoch-rows and --epochs, after the options that do not go with them.
void AddCacheOptions(CommandLine* command_line, CacheOptions* options);

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

// The first lines: what to keep, or why nothing.
void PrintCacheVerdict(const analysis::PipelineModel& model,
                       const analysis::CacheQuestion& question, const analysis::Allocation& plan,
                       const analysis::CacheChoice& choice);
// Every stage and tier, with the rest of the pipeline as it is.
void PrintCacheTable(const analysis::PipelineModel& model, const CacheOptions& options,
                     const analysis::CacheQuestion& question, const analysis::CacheChoice& choice);
// The same as a JSON object.
std::string CacheJson(const analysis::PipelineModel& model, const CacheOptions& options,
                      const analysis::CacheQuestion& question, const analysis::CacheChoice& choice);

}  // namespace headrace::cli
