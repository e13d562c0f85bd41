#include "reader/pipeline/batching.h"

namespace headrace::reader {

uint64_t WorkerRows(const PipelineSpec& spec) {
  return spec.worker_rows != 0 ? spec.worker_rows : spec.batch_rows;
}

bool CachesWholeSplits(const PipelineSpec& spec) {
  return spec.cache.enabled() && spec.cache.after != "extract";
}

uint64_t SliceRows(const PipelineSpec& spec) {
  const bool is_direct = spec.layout == BatchLayout::kDirect && !CachesWholeSplits(spec);
  return is_direct ? WorkerRows(spec) : 0;
}

}  // namespace headrace::reader
