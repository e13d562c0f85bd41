// What `headrace run` knows about the conditions of a run before its first read. They decide
// whether two runs of one pipeline are comparable.
#pragma once
#include "collectors/store/store.h"
#include "reader/pipeline/spec.h"

namespace headrace::experiments {

// Looks at the table and the page cache; with spec.cold_reads, first drops the table from the page
// cache. `settings` are those on top of the pipeline file, in order. Call before the Pipeline opens
// the table. What cannot be found out is left out, with the reason; throws only what listing a
// table throws.
collectors::RunConditions ReadConditions(const reader::PipelineSpec& spec,
                                         const reader::Settings& settings);

}  // namespace headrace::experiments
