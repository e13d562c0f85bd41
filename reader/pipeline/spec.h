// PipelineSpec: pipeline.toml in memory. docs/pipeline.md describes the file; a mistake in it is an
// Error kUsage with file, line, column and, for a mistyped name, the nearest valid one.
#pragma once
#include <any>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "reader/batch/row_filter.h"
#include "reader/dwrf/projection.h"
#include "reader/fetch/device_cost.h"
#include "reader/fetch/fetch.h"
#include "reader/pipeline/cache/options.h"
#include "reader/pipeline/cost.h"
#include "reader/pipeline/dedup_plan.h"
#include "reader/pipeline/delivery/options.h"
#include "reader/source/options.h"
#include "reader/source/throttle.h"
#include "reader/transforms/plan.h"

namespace headrace::reader {

struct OperatorSpec {
  std::string kind;  // its entry in the OperatorRegistry (operator.h)
  std::string name;  // unique in the pipeline; the kind unless given
  std::any keys;     // what the kind reads from the operator's table; empty where it has none
};

constexpr uint32_t kMaxQueue = 65536;  // elements in a queue behind a stage

struct StageSpec {
  std::string name;
  std::vector<OperatorSpec> operators;
  uint32_t parallelism = 1;
  uint32_t max_parallelism = 0;  // 0 = no limit, 1 = sequential
  uint32_t queue = 4;            // capacity of the queue behind this stage
};

enum class ConsumerKind : uint8_t {
  kEmulated,  // computes for the time of a step
  kTrainer,   // trains a model (workloads/trainer)
  kNone       // drops batches
};
enum class InteractionKind : uint8_t { kDot, kConcatenate };

// The model that kTrainer trains; workloads/trainer/dlrm.h says what it is.
struct ModelSpec {
  uint64_t rows = 100'000;                  // of each sparse feature's embedding table
  uint32_t dim = 16;                        // floats of an embedding
  std::vector<uint32_t> bottom = {64, 32};  // widths of the layers below; one of `dim` follows
  std::vector<uint32_t> top = {64};         // ... and above; one of 1 follows
  InteractionKind interaction = InteractionKind::kDot;
  float rate = 0.01f;  // of gradient descent
  bool dedup = true;   // deduplicated features are looked up and pooled once for equal rows
};

struct ConsumerSpec {
  ConsumerKind kind = ConsumerKind::kEmulated;
  Cost step;          // nanoseconds; mean 0 = as fast as possible
  bool spin = false;  // burns CPU for the step instead of sleeping
  ModelSpec model;
};

struct SyntheticSource {
  uint64_t elements = 0;  // per epoch
  uint64_t rows = 1;      // per element
  uint64_t bytes = 0;     // per element, for accounts
};

// How rows get from decoded streams to tensors.
enum class BatchLayout : uint8_t {
  kDirect,   // ids straight into the memory of the tensors (reader/dwrf/slices.h)
  kFlatMap,  // into a vector for each feature; these are then cut and joined
};

// Whether ids stay in their dictionary until after the transforms that work on each id separately.
enum class DictionaryMode : uint8_t {
  kAuto,    // where it pays (dwrf::DictionaryRequest)
  kOff,     // every id is looked up when it is decoded
  kAlways,  // wherever there is a dictionary
};

struct PipelineSpec {
  std::string path;  // of the file, for messages
  std::string text;  // the file as read
  // Every scalar key with the value that it has, defaults included, by the name that a setting has
  // for it; "transform[0].op" for lists without names.
  std::map<std::string, std::string> in_force;
  std::string name = "pipeline";
  bool file_order = false;  // order = "file"
  uint64_t batch_rows = 512;
  uint64_t worker_rows = 0;   // of the batches that rebatch joins; 0: batch_rows
  uint64_t shuffle_rows = 0;  // of a window of the operator shuffle
  // With file order: how far an element may be ahead of the due one; 0: any.
  uint64_t reorder_window = 0;
  uint32_t prefetch = 0;  // capacity of the last queue; 0: as its stage says
  BatchLayout layout = BatchLayout::kDirect;
  DictionaryMode dictionary = DictionaryMode::kAuto;
  uint64_t memory_bytes = 0;  // of the whole process (memory_ledger.h); 0: no bound
  bool huge_pages = false;
  std::vector<RowFilter> filters;
  uint64_t seed = 1;
  std::string table;  // absolute path; empty for a synthetic source
  std::optional<SyntheticSource> synthetic;
  uint64_t epochs = 1;  // 0 = for ever
  FetchOptions fetch;
  bool gap_is_auto = false;  // fetch.max_gap_bytes is to be chosen (reader/pipeline/gap.h)
  std::optional<DeviceCost> device_cost;
  SourceOptions io;
  ThrottleOptions throttle;
  TierOptions tier;
  bool verify_checksums = false;  // of every stripe before it is read
  // Local files: the page cache is made to forget each stripe before it is read, in every epoch.
  bool cold_reads = false;
  bool skip_corrupt = false;  // a stripe that cannot be read is left out, and counted
  std::string keys;           // of encrypted columns: a file, absolute, or env:NAME; empty: none
  std::string label;
  dwrf::Projection projection;
  std::vector<StageSpec> stages;
  std::vector<TransformSpec> transforms;
  std::optional<std::vector<std::string>> outputs;  // features behind the transforms; unset: all
  DedupOptions dedup;
  ConsumerSpec consumer;
  DeliveryOptions delivery;
  CacheOptions cache;
  // The consumer gets the first batch repeatedly while the pipeline stands still behind full
  // queues. This shows how fast the consumer would be if input cost nothing. Not a key of the file.
  bool repeat_first_batch = false;
  // `batch` makes batches of the rows of one unit of a split each (reader/service/lease.h), of this
  // many rows before filters; 0: it makes batches of batch_rows. Not a key of the file.
  uint64_t unit_rows = 0;
};

// Whether some stage has an operator of this kind.
bool HasOperator(const PipelineSpec& spec, std::string_view kind);

using Settings = std::vector<std::pair<std::string, std::string>>;  // knob -> value text

// Reads and checks a pipeline file. `settings` replace values first, in order:
// "decode.parallelism", "decode.queue", "consumer.step", "pipeline.batch_rows", "source.epochs" and
// every other scalar key of a section or a stage; not what is in [[transform]] and [[filter]].
// Throws Error.
PipelineSpec LoadPipeline(const std::string& path, const Settings& settings = {});
// The same from text; relative paths inside are taken from `folder`.
PipelineSpec ParsePipeline(const std::string& text, const std::string& path,
                           const std::string& folder, const Settings& settings = {});

// "decode.parallelism=2" -> {"decode.parallelism", "2"}. Throws Error kUsage.
std::pair<std::string, std::string> ParseSetting(const std::string& text);

}  // namespace headrace::reader
