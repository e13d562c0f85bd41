// Operator: one accountable step, Process(element) -> elements. It knows no thread, no clock and no
// queue; its name is what every report shows. A stage makes one instance per thread, so an instance
// may keep state without locks; what instances must share (a lock, a device, a table) they get from
// the OperatorContext.
#pragma once
#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "reader/dwrf/projection.h"
#include "reader/pipeline/dictionaries.h"
#include "reader/pipeline/element.h"
#include "reader/pipeline/shared_resource.h"
#include "reader/pipeline/spec.h"
#include "reader/pipeline/stop_signal.h"
#include "reader/transforms/plan.h"

namespace headrace::reader {

using Emit = std::function<void(Element&&)>;

class Operator {
 public:
  virtual ~Operator() = default;
  // Calls `emit` once per element made: usually once; `batch` none or many times.
  virtual void Process(Element&& element, const Emit& emit) = 0;
  // The thread's input has ended: emits what is left over.
  virtual void Finish(const Emit& /*emit*/) {}
  // Whether FlatMap batches of no rows come here; they carry spans of dropped rows to the consumer
  // (reader/batch/row_span.h) and may have no columns. They go past the operators that do not.
  virtual bool TakesEmpty() const { return false; }
  // Whether splits that a cache holds (reader/pipeline/cache) come here; they go past the others.
  virtual bool TakesCached() const { return false; }
};

class BatchCache;

// What operators of one pipeline share. Owned by the pipeline, which outlives its operators.
struct OperatorContext {
  StopSignal* stop = nullptr;
  const PipelineSpec* spec = nullptr;
  std::shared_ptr<const Table> table;  // null for synthetic sources
  dwrf::Projection projection;
  std::shared_ptr<const TransformPlan> transforms;  // null without [[transform]]
  SharedResources* resources = nullptr;
  std::shared_ptr<const DedupPlan> dedup;                   // null without groups
  std::shared_ptr<const DictionaryPlan> dictionaries;       // null: all ids are looked up
  std::atomic<uint64_t>* looked_up_dictionaries = nullptr;  // DictionaryPlan::CountLookedUp
  StreamTier* tier = nullptr;                               // null without [source.tier]
  BatchCache* cache = nullptr;                              // null without [[cache]]
  // Room that slabs get for the ids of derived features, in thousandths of what is decoded into
  // them: as much as `tensorize` found missing. First that of features without a group, then that
  // of each group of `dedup`.
  std::atomic<uint32_t>* slab_spare = nullptr;
  // Stripes that layout "direct" could not take, as their maps are not flattened.
  std::atomic<uint64_t>* ordinary_stripes = nullptr;
  std::atomic<uint64_t>* filtered_rows = nullptr;      // that [[filter]] dropped
  std::atomic<uint64_t>* unchecked_stripes = nullptr;  // without a checksum to compare with
  MemoryLedger* memory = nullptr;                      // null: no budget
};

// One operator of a stage, registered with the accounts before threads start.
struct OperatorPlan {
  OperatorSpec spec;
  uint32_t account = 0;
  uint32_t io_account = 0;                 // `fetch` only: the requests to the storage
  uint32_t retry_account = UINT32_MAX;     // those that repeat a failed one: remote storage only
  uint32_t footer_account = UINT32_MAX;    // `fetch`: reads of the stripes' directories
  uint32_t stored_account = UINT32_MAX;    // `fetch`: what the stripes hold, wanted or not
  uint32_t locked_account = UINT32_MAX;    // `fetch`: what is null for want of a key
  uint32_t checksum_account = UINT32_MAX;  // `fetch` with source.checksum: reading it all once more
  uint32_t copy_account = UINT32_MAX;      // `tensorize`: ids and weights copied since decoded
  uint32_t hit_account = UINT32_MAX, miss_account = UINT32_MAX;  // of the tier, if there is one
  uint32_t cache_hit_account = UINT32_MAX, cache_miss_account = UINT32_MAX;  // with [[cache]]
  std::vector<uint32_t> dedup_accounts;  // `decode` and `extract`: of each group of the DedupPlan
  uint32_t dictionary_account = UINT32_MAX;  // `transform`: what was done on dictionaries
  std::vector<uint32_t>
      transform_accounts;  // `transform` only: one account per entry of the TransformPlan
};

// A new instance for one thread. Throws Error kUsage for a spec that cannot work.
std::unique_ptr<Operator> MakeSyntheticOperator(const OperatorPlan& plan,
                                                const OperatorContext& context);
std::unique_ptr<Operator> MakeTableOperator(const OperatorPlan& plan,
                                            const OperatorContext& context);

}  // namespace headrace::reader
