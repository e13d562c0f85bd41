#include "analysis/program/reader_cache.h"

#include <algorithm>
#include <cmath>

#include "analysis/thresholds.h"

namespace headrace::analysis {
namespace {

// The operators of the reader after which [[cache]] can stand.
bool KeptByReader(const std::string& op) {
  return op == "extract" || op == "rowmap" || op == "transform";
}

}  // namespace

bool IsReader(const PipelineModel& model) {
  return std::any_of(model.operators().begin(), model.operators().end(),
                     [](const OperatorModel& op) { return op.name == "extract"; });
}

std::string CacheAfter(const PipelineModel& model, size_t stage) {
  const std::string& op = model.operators()[model.stages()[stage].last].name;
  return IsReader(model) && KeptByReader(op) ? op : std::string();
}

uint64_t CacheBudgetMiB(const PlannedCache& cache) {
  constexpr double kMiB = 1 << 20;
  const double wanted =
      cache.share < kCacheHoldsAll ? cache.bytes : kCacheSlack * cache.bytes / cache.share;
  const double most = std::floor(std::max(cache.most_bytes, cache.bytes) / kMiB);
  return static_cast<uint64_t>(std::max(1.0, std::min(std::ceil(wanted / kMiB), most)));
}

}  // namespace headrace::analysis
