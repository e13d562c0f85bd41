#include "reader/pipeline/cache/cache_operators.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/error.h"
#include "probes/account/account.h"
#include "reader/dwrf/slices.h"
#include "reader/pipeline/batching.h"
#include "reader/pipeline/cache/batch_bytes.h"
#include "reader/pipeline/fingerprint.h"
#include "reader/source/identity.h"

namespace headrace::reader {
namespace {

bool DropsRows(const PipelineSpec& spec) {
  return std::any_of(spec.stages.begin(), spec.stages.end(), [](const StageSpec& stage) {
    return std::any_of(stage.operators.begin(), stage.operators.end(),
                       [](const OperatorSpec& op) { return EntryOf(op).drops_rows; });
  });
}

// Before fetch: a split that is kept goes on as what was kept.
class FindOperator final : public Operator {
 public:
  FindOperator(BatchCache* cache, std::unique_ptr<Operator> fetch)
      : cache_(cache), fetch_(std::move(fetch)) {}
  void Process(Element&& element, const Emit& emit) override {
    const Split& split = element.payload.As<Split>();
    auto found = element.wanted ? nullptr : cache_->Find(split.id);
    if (!found) {
      hr_done(cache_->miss_account(), 1, split.rows, 0, 0);
      return fetch_->Process(std::move(element), emit);
    }
    hr_done(cache_->hit_account(), 1, split.rows, 0, found->bytes.size());
    element.bytes = 0;  // nothing was read
    // It may have come in after the split was admitted.
    if (element.memory) element.memory->FoundInCache();
    element.payload = std::move(found);
    emit(std::move(element));
  }
  void Finish(const Emit& emit) override { fetch_->Finish(emit); }

 private:
  BatchCache* cache_;
  std::unique_ptr<Operator> fetch_;
};

// Behind the last operator that is passed over: keeps its batches, or lets kept ones out.
class KeepOperator final : public Operator {
 public:
  KeepOperator(const OperatorContext& context, std::unique_ptr<Operator> last)
      : cache_(context.cache),
        spec_(*context.spec),
        filtered_rows_(CountsFiltered(context) ? &context.counts->filtered_rows : nullptr),
        last_(std::move(last)) {}

  void Process(Element&& element, const Emit& emit) override {
    if (const auto* found = element.payload.Get<CachedPayload>()) {
      const CachedPayload kept = *found;
      return LetOut(*kept, element, emit);
    }
    const bool is_empty = element.rows == 0 && element.payload.Get<FlatMapBatch>() != nullptr;
    if (is_empty && !last_->TakesEmpty()) return Pass(std::move(element), emit);
    last_->Process(std::move(element), [&](Element&& out) { Pass(std::move(out), emit); });
  }
  void Finish(const Emit& emit) override { last_->Finish(emit); }
  bool TakesEmpty() const override { return true; }
  bool TakesCached() const override { return true; }

 private:
  void Pass(Element&& element, const Emit& emit) {
    const auto* batch = element.payload.Get<FlatMapBatch>();
    // A batch that settles nothing only stands for its place among the slices of the split.
    if (batch != nullptr && !element.wanted && !batch->spans.empty())
      cache_->Add(element.origin.split, element.origin.count, *batch);
    emit(std::move(element));
  }

  // As many batches as `extract` makes of the split.
  void LetOut(const CachedBatches& kept, const Element& element, const Emit& emit) const {
    uint64_t sequence = element.first_slice;
    std::vector<FlatMapBatch> batches = kept.Read();
    batches.resize(
        std::max<size_t>(batches.size(), dwrf::NumSlices(element.origin.count, SliceRows(spec_))));
    for (FlatMapBatch& batch : batches) {
      uint64_t dropped = 0;
      for (RowSpan& span : batch.spans) {
        span.epoch = element.origin.epoch;
        dropped += span.count - span.rows;
      }
      if (filtered_rows_ != nullptr) filtered_rows_->fetch_add(dropped, std::memory_order_relaxed);
      Element out;
      out.sequence = sequence++;
      out.rows = batch.rows;
      out.bytes = batch.MemoryBytes();
      out.seed = element.seed;
      out.origin = element.origin;
      out.memory = element.memory;
      out.payload = std::move(batch);
      emit(std::move(out));
    }
  }

  // Whether rows that a kept batch has not are those that filters dropped. Behind operators and
  // transforms that drop rows too they cannot be told apart.
  static bool CountsFiltered(const OperatorContext& context) {
    if (context.spec->filters.empty()) return false;
    if (DropsRows(*context.spec)) return false;
    if (context.spec->cache.after != "transform" || !context.transforms) return true;
    for (size_t i = 0; i < context.transforms->size(); ++i)
      if (context.transforms->drops_rows(i)) return false;
    return true;
  }

  BatchCache* cache_;
  const PipelineSpec& spec_;
  std::atomic<uint64_t>* const filtered_rows_;  // null: not to be counted here
  std::unique_ptr<Operator> last_;
};

bool IsAfter(const OperatorPlan& plan, const PipelineSpec& spec) {
  return plan.spec.kind == spec.cache.after;
}

void AddFile(const Source& source, Description* text) {
  const SourceIdentity identity = IdentityOf(source);
  text->Add(identity.name);
  text->Add(identity.content);
}

// The groups that batches have, and which rows of them are unique: not how they were chosen.
void AddGroups(const DedupPlan* dedup, Description* text) {
  text->Add(dedup == nullptr ? 0 : dedup->groups.size());
  if (dedup == nullptr) return;
  text->Add(static_cast<int>(dedup->scope));
  for (const DedupFactor& group : dedup->groups) {
    text->Add(group.name);
    text->AddList(group.keys);
  }
}

}  // namespace

uint64_t CacheFingerprint(const PipelineSpec& spec, const Table& table,
                          const TransformPlan* transforms, const DedupPlan* dedup) {
  const Fingerprint rows = FingerprintOf(table, spec);
  Description text;
  text.Add("headrace.cache");
  text.Add(HEADRACE_VERSION);
  text.Add(kBatchBytesVersion);
  text.Add(spec.cache.after);
  text.Add(rows.table);
  for (const auto& file : table.files) AddFile(file->source(), &text);
  text.Add(rows.projection);
  if (DropsRows(spec)) text.Add(rows.seed);
  // What rows a batch of an entry has, and how many batches there are.
  text.Add(SliceRows(spec));
  AddGroups(dedup, &text);
  if (spec.cache.after == "transform" && transforms != nullptr) {
    text.Add(rows.transforms);
    if (transforms->FirstRandom() != nullptr) text.Add(rows.seed);
  }
  return text.Hash();
}

std::unique_ptr<BatchCache> OpenCache(const PipelineSpec& spec, const Table& table,
                                      const TransformPlan* transforms, const DedupPlan* dedup) {
  if (!spec.cache.enabled()) return nullptr;
  const TransformSpec* random = transforms == nullptr ? nullptr : transforms->FirstRandom();
  if (spec.cache.after == "transform" && random != nullptr && !spec.cache.allow_random) {
    throw Error(ExitCode::kUsage,
                fmt::format("the transform '{}' before the cache is random: what it draws in one "
                            "run would be kept for others",
                            random->op),
                random->line > 0 ? fmt::format("{}:{}:{}", spec.path, random->line, random->column)
                                 : spec.path,
                "cache after extract, or set cache.allow_random = true");
  }
  return std::make_unique<BatchCache>(spec.cache, CacheFingerprint(spec, table, transforms, dedup));
}

std::unique_ptr<Operator> WithCache(const OperatorPlan& plan, const OperatorContext& context,
                                    std::unique_ptr<Operator> op) {
  if (context.cache == nullptr) return op;
  if (EntryOf(plan.spec).takes == ElementForm::kSplit)
    return std::make_unique<FindOperator>(context.cache, std::move(op));
  if (IsAfter(plan, *context.spec)) return std::make_unique<KeepOperator>(context, std::move(op));
  return op;
}

}  // namespace headrace::reader
