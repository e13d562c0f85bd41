#include "reader/pipeline/cache/cache_operators.h"

#include <fmt/format.h>
#include <xxhash.h>

#include <algorithm>
#include <utility>
#include <variant>

#include "base/error.h"
#include "probes/account/account.h"
#include "reader/dwrf/slices.h"
#include "reader/pipeline/batching.h"
#include "reader/pipeline/cache/batch_bytes.h"
#include "reader/source/identity.h"

namespace headrace::reader {
namespace {

// Before fetch: a split that is kept goes on as what was kept.
class FindOperator final : public Operator {
 public:
  FindOperator(const OperatorPlan& plan, BatchCache* cache, std::unique_ptr<Operator> fetch)
      : plan_(plan), cache_(cache), fetch_(std::move(fetch)) {}
  void Process(Element&& element, const Emit& emit) override {
    const Split& split = element.payload.As<Split>();
    auto found = element.wanted ? nullptr : cache_->Find(split.id);
    if (!found) {
      hr_done(plan_.cache_miss_account, 1, split.rows, 0, 0);
      return fetch_->Process(std::move(element), emit);
    }
    hr_done(plan_.cache_hit_account, 1, split.rows, 0, found->bytes.size());
    element.bytes = 0;  // nothing was read
    // It may have come in after the split was admitted.
    if (element.memory) element.memory->FoundInCache();
    element.payload = std::move(found);
    emit(std::move(element));
  }
  void Finish(const Emit& emit) override { fetch_->Finish(emit); }

 private:
  const OperatorPlan& plan_;
  BatchCache* cache_;
  std::unique_ptr<Operator> fetch_;
};

// Behind the last operator that is passed over: keeps its batches, or lets kept ones out.
class KeepOperator final : public Operator {
 public:
  KeepOperator(const OperatorContext& context, std::unique_ptr<Operator> last)
      : cache_(context.cache),
        spec_(*context.spec),
        filtered_rows_(CountsFiltered(context) ? context.filtered_rows : nullptr),
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

  // Whether rows that a kept batch has not are those that filters dropped. Behind transforms that
  // drop rows too they cannot be told apart.
  static bool CountsFiltered(const OperatorContext& context) {
    if (context.spec->filters.empty()) return false;
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
  return !IsSynthetic(plan.spec.kind) && OperatorKindName(plan.spec.kind) == spec.cache.after;
}

// Text with lengths before its parts, so that no two lists of parts are equal.
class Description {
 public:
  template <typename T>
  void Add(const T& value) {
    const std::string text = fmt::format("{}", value);
    text_ += fmt::format("{}:{},", text.size(), text);
  }
  void AddList(const std::vector<std::string>& values) {
    Add(values.size());
    for (const std::string& value : values) Add(value);
  }
  uint64_t Hash() const { return XXH3_64bits(text_.data(), text_.size()); }

 private:
  std::string text_;
};

void AddFile(const Source& source, Description* text) {
  const SourceIdentity identity = IdentityOf(source);
  text->Add(identity.name);
  text->Add(identity.content);
}

void AddParam(const ParamValue& value, Description* text) {
  text->Add(value.index());
  std::visit(
      [&](const auto& held) {
        using T = std::decay_t<decltype(held)>;
        if constexpr (!std::is_arithmetic_v<T> && !std::is_same_v<T, std::string>) {
          text->Add(held.size());
          for (size_t i = 0; i < held.size(); ++i) {
            const typename T::value_type each = held[i];
            text->Add(each);
          }
        } else {
          text->Add(held);
        }
      },
      value);
}

}  // namespace

uint64_t CacheFingerprint(const PipelineSpec& spec, const Table& table,
                          const TransformPlan* transforms) {
  Description text;
  text.Add("headrace.cache");
  text.Add(HEADRACE_VERSION);
  text.Add(kBatchBytesVersion);
  text.Add(spec.cache.after);
  for (const auto& file : table.files) AddFile(file->source(), &text);
  text.AddList(spec.projection.columns);
  for (const dwrf::FeatureRequest& feature : spec.projection.features)
    text.Add(dwrf::FeatureName(feature));
  // What rows an entry has, and how many batches.
  text.Add(SliceRows(spec));
  for (const RowFilter& filter : spec.filters) {
    text.Add(filter.name);
    text.Add(filter.is_column);
    text.Add(filter.min);
    text.Add(filter.max);
    text.Add(filter.in.size());
    for (const long double value : filter.in) text.Add(value);
    text.Add(filter.keep_absent);
  }
  if (spec.cache.after != "transform" || transforms == nullptr) return text.Hash();
  for (const TransformSpec& transform : spec.transforms) {
    text.Add(transform.op);
    text.Add(transform.output);
    text.AddList(transform.inputs);
    for (const auto& [name, value] : transform.params) {
      text.Add(name);
      AddParam(value, &text);
    }
  }
  text.Add(spec.outputs.has_value());
  if (spec.outputs) text.AddList(*spec.outputs);
  if (transforms->FirstRandom() != nullptr) text.Add(spec.seed);
  return text.Hash();
}

std::unique_ptr<BatchCache> OpenCache(const PipelineSpec& spec, const Table& table,
                                      const TransformPlan* transforms) {
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
  return std::make_unique<BatchCache>(spec.cache, CacheFingerprint(spec, table, transforms));
}

std::unique_ptr<Operator> WithCache(const OperatorPlan& plan, const OperatorContext& context,
                                    std::unique_ptr<Operator> op) {
  if (context.cache == nullptr) return op;
  if (plan.spec.kind == OperatorKind::kFetch)
    return std::make_unique<FindOperator>(plan, context.cache, std::move(op));
  if (IsAfter(plan, *context.spec)) return std::make_unique<KeepOperator>(context, std::move(op));
  return op;
}

}  // namespace headrace::reader
