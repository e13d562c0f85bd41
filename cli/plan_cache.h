// headrace plan --cache: whether to keep a stage's output between epochs, and where, beside the
// plan that chooses it.
#pragma once
#include <string>
#include <vector>

#include "analysis/model/pipeline_model.h"
#include "analysis/program/allocation.h"
#include "analysis/program/cache_choice.h"
#include "experiments/cache_options.h"

namespace headrace::cli {

class CommandLine;

// --cache, --epoch-rows and --epochs, after the options that do not go with them.
void AddCacheOptions(CommandLine* command_line, experiments::CacheOptions* options);

// The first lines: what to keep, or why nothing.
void PrintCacheVerdict(const analysis::PipelineModel& model,
                       const analysis::CacheQuestion& question, const analysis::Allocation& plan,
                       const analysis::CacheChoice& choice);
// Every stage and tier, with the rest of the pipeline as it is.
void PrintCacheTable(const analysis::PipelineModel& model, const experiments::CacheOptions& options,
                     const analysis::CacheQuestion& question, const analysis::CacheChoice& choice);
// The same as a JSON object.
std::string CacheJson(const analysis::PipelineModel& model,
                      const experiments::CacheOptions& options,
                      const analysis::CacheQuestion& question, const analysis::CacheChoice& choice);

}  // namespace headrace::cli
