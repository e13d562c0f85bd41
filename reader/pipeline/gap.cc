#include "reader/pipeline/gap.h"

#include "base/error.h"
#include "reader/source/open.h"

namespace headrace::reader {

uint32_t ReadsUnderWay(const PipelineSpec& spec) {
  if (IsRemote(spec.table)) return spec.io.remote.connections;
  return spec.io.io == IoMethod::kUring ? spec.io.depth : 1;
}

void ChooseGap(PipelineSpec* spec) {
  if (!spec->gap_is_auto || spec->synthetic) return;
  if (spec->device_cost) {
    spec->fetch.max_gap_bytes = spec->device_cost->BestGapBytes();
  } else if (spec->throttle.enabled()) {
    spec->fetch.max_gap_bytes = CostOfThrottle(spec->throttle, ReadsUnderWay(*spec)).BestGapBytes();
  } else {
    throw Error(ExitCode::kUsage,
                "coalesce_gap = \"auto\" needs what a read costs, and this storage is not measured",
                spec->path,
                "run 'headrace doctor --calibrate --folder FOLDER' on the table's file system, or "
                "give [source.device] ns_per_request and ns_per_byte");
  }
}

}  // namespace headrace::reader
