// Operator: one accountable step, Process(element) -> elements. It knows no thread, no clock and no
// queue; its name is what every report shows. A stage makes one instance per thread, so an instance
// may keep state without locks; what instances must share (a lock, a device, a table) they get from
// the OperatorContext.
#pragma once
#include <any>
#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "base/registry.h"
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
  // Whether this operator takes FlatMap batches without rows, which carry spans of dropped rows to
  // the consumer (reader/batch/row_span.h) and may have no columns. They bypass other operators.
  virtual bool TakesEmpty() const { return false; }
  // Whether this operator takes splits that a cache holds (reader/pipeline/cache). They bypass
  // other operators.
  virtual bool TakesCached() const { return false; }
};

class BatchCache;
class Description;  // fingerprint.h
class SpecValue;

// What operators count for the messages at the end of a run.
struct RunCounts {
  // Stripes that layout "direct" could not take, as their maps are not flattened.
  std::atomic<uint64_t> ordinary_stripes{0};
  std::atomic<uint64_t> filtered_rows{0};           // that [[filter]] dropped
  std::atomic<uint64_t> unchecked_stripes{0};       // without a checksum to compare with
  std::atomic<uint64_t> looked_up_dictionaries{0};  // DictionaryPlan::CountLookedUp
};

// What operators of one pipeline share. Owned by the pipeline, which outlives its operators.
struct OperatorContext {
  StopSignal* stop = nullptr;
  const PipelineSpec* spec = nullptr;
  SharedResources* resources = nullptr;
  RunCounts* counts = nullptr;
  MemoryLedger* memory = nullptr;      // null: no budget
  std::shared_ptr<const Table> table;  // null for synthetic sources
  // Some column is null because its key is missing.
  bool has_locked = false;
  StreamTier* tier = nullptr;                          // null without [source.tier]
  BatchCache* cache = nullptr;                         // null without [[cache]]
  std::shared_ptr<const TransformPlan> transforms;     // null without [[transform]]
  std::shared_ptr<const DictionaryPlan> dictionaries;  // null: all ids are looked up
  std::shared_ptr<const DedupPlan> dedup;              // null without groups
  std::vector<uint32_t> dedup_accounts;                // of each group
  // Room that slabs get for the ids of derived features, in thousandths of what is decoded into
  // them: as much as `tensorize` found missing. The first value is for features without a group,
  // then one for each group of `dedup`.
  std::atomic<uint32_t>* slab_spare = nullptr;
};

// One operator of a stage, registered with the accounts before threads start.
struct OperatorPlan {
  OperatorSpec spec;
  uint32_t stage = 0;    // its stage's account
  uint32_t account = 0;  // its own
  // Further accounts beside its own, in an order that the operator's file defines.
  std::vector<uint32_t> accounts;

  // Registers a further account; if this run does not keep it, its place stays empty.
  void AddAccount(const std::string& name, const char* kind, bool is_kept = true);
  // The further account at `place`; UINT32_MAX: this run does not keep it.
  uint32_t Account(size_t place) const {
    return place < accounts.size() ? accounts[place] : UINT32_MAX;
  }
};

// What the elements between two operators of a table are.
enum class ElementForm : uint8_t {
  kAny,      // of a synthetic operator, which stands anywhere and looks at no payload
  kSplit,    // which stripe it is; nothing is read
  kStored,   // bytes as they are stored
  kPlain,    // streams as they were encoded
  kDecoded,  // values that are not in rows yet
  kRows,     // FlatMap batch
  kTensors   // tensor batch
};

// What an operator is, told once at the end of its own file (HR_OPERATOR).
struct OperatorEntry {
  // Its position when errors list all operators. A table's operators also have this order in a
  // pipeline, each after one that makes what it takes.
  int order = 0;
  ElementForm takes = ElementForm::kAny, makes = ElementForm::kAny;
  const char* presence = "";  // how errors describe an operator that may be missing: "optional"
  // Its elements contain rows of several splits, so with order = "file" it runs on one thread.
  bool joins_rows = false;
  // It drops rows at random, so rows that are missing from a batch need not have been dropped by
  // [[filter]].
  bool drops_rows = false;
  // An operator with keys is a table { KIND = ..., KEY = ... }. `keys` are those beside its kind
  // and `name`; `needs` ends the sentence "'KIND' needs ..." for one without its table; `parse`
  // reads and checks them for OperatorSpec::keys, and throws Error kUsage.
  std::vector<std::string> keys = {};
  const char* needs = "";
  std::any (*parse)(const SpecValue& table, const std::string& kind) = nullptr;
  // If its keys decide which rows there are, or what they contain: adds the keys to the fingerprint
  // of checkpoints and caches.
  void (*describe)(const OperatorSpec&, Description*) = nullptr;
  // Add the plan's further accounts. `add_accounts` registers them before the operator's own,
  // because the last operator of a stage is the one that completes elements; `add_inner_accounts`
  // registers them after it.
  void (*add_accounts)(OperatorContext*, OperatorPlan*) = nullptr;
  void (*add_inner_accounts)(OperatorContext*, OperatorPlan*) = nullptr;
  // A new instance for one thread. Throws Error kUsage for a spec that cannot work.
  std::unique_ptr<Operator> (*make)(const OperatorPlan&, const OperatorContext&) = nullptr;
};
using OperatorRegistry = Registry<OperatorEntry>;

const OperatorEntry& EntryOf(const OperatorSpec& op);
inline bool IsSynthetic(const OperatorEntry& entry) { return entry.takes == ElementForm::kAny; }
std::vector<std::pair<std::string, const OperatorEntry*>> OperatorsInOrder();

std::unique_ptr<Operator> MakeOperator(const OperatorPlan& plan, const OperatorContext& context);

// Registers `Class`, which is made from a plan and a context, or from nothing:
//   HR_OPERATOR("fetch", FetchOperator, {.order = 10, ...});
#define HR_OPERATOR(name, Class, ...)                                                            \
  [[maybe_unused]] static const bool HR_REGISTRAR = ::headrace::reader::RegisterOperator<Class>( \
      name, ::headrace::reader::OperatorEntry __VA_ARGS__)

template <typename Class>
bool RegisterOperator(const char* name, OperatorEntry entry) {
  entry.make = [](const OperatorPlan& plan,
                  const OperatorContext& context) -> std::unique_ptr<Operator> {
    if constexpr (std::is_default_constructible_v<Class>) {
      return std::make_unique<Class>();
    } else {
      return std::make_unique<Class>(plan, context);
    }
  };
  return OperatorRegistry::Global().Add(name, std::move(entry));
}

}  // namespace headrace::reader
