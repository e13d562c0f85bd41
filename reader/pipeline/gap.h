// The gap of coalesce_gap = "auto": what one request costs the storage, in bytes.
#pragma once
#include "reader/pipeline/spec.h"

namespace headrace::reader {

// Sets spec->fetch.max_gap_bytes where the file says "auto": from [source.device] or else from the
// modelled device. Throws Error kUsage when there is neither.
void ChooseGap(PipelineSpec* spec);

// How many reads one thread has in flight: requests of io_uring, or connections to remote storage.
uint32_t ReadsUnderWay(const PipelineSpec& spec);

}  // namespace headrace::reader
