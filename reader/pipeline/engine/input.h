// Input: what a pipeline reads from, opened and checked before anything runs, and the context that
// its operators share.
#pragma once
#include <atomic>
#include <functional>
#include <memory>

#include "reader/fetch/stream_tier.h"
#include "reader/pipeline/cache/batch_cache.h"
#include "reader/pipeline/engine/table_checks.h"
#include "reader/pipeline/memory_ledger.h"
#include "reader/pipeline/operator.h"
#include "reader/pipeline/shared_resource.h"

namespace headrace::reader {

struct Input {
  SourceContext sources;
  std::shared_ptr<Table> table;  // null: synthetic elements
  LockedColumns locked;
  std::unique_ptr<StreamTier> tier;                     // null without [source.tier]
  std::unique_ptr<BatchCache> cache;                    // null without [[cache]]
  std::unique_ptr<MemoryLedger> memory;                 // null: no budget
  std::unique_ptr<std::atomic<uint32_t>[]> slab_spare;  // OperatorContext::slab_spare
  SharedResources resources;
  RunCounts counts;
  OperatorContext context;  // refers to all of the above
};

// Writes choices that are made here into `spec`, such as the gap for coalesce_gap = "auto". `spec`
// and `stop` must outlive the input. When `interrupted` returns true, waits for remote storage end
// with Error kInterrupted. Throws Error.
std::unique_ptr<Input> OpenInput(PipelineSpec* spec, StopSignal* stop,
                                 std::function<bool()> interrupted);

}  // namespace headrace::reader
