// headrace plan --cache: whether to keep a stage's output between epochs, and where.
#pragma once
#include <string>
#include <vector>

#include "analysis/pipeline_model.h"
#include "analysis/run_view.h"

namespace CLI {
class App;
}

namespace headrace::cli {

struct CacheOptions {
  std::vector<std::string> tiers;  // "memory=8GiB", "disk=200GiB@1.5GB/s"
  double epoch_rows = 0, epochs = 0;
  bool json = false;
};

// --cache, --epoch-rows and --epochs, after the options that do not go with them.
void AddCacheOptions(CLI::App* app, CacheOptions* options);

// Prints the page. Returns the exit code; throws Error kUsage for tiers that cannot be.
int PlanCache(const analysis::RunView& view, const analysis::PipelineModel& model,
              const CacheOptions& options);

}  // namespace headrace::cli
