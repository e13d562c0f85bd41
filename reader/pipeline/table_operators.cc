// The operators between the bytes of a table and the tensors of a batch. Each wraps one step of
// reader/dwrf or reader/transforms; the steps know nothing of stages and queues.
#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "base/check.h"
#include "base/error.h"
#include "probes/account/scope.h"
#include "reader/batch/keep_rows.h"
#include "reader/batch/row_map_batch.h"
#include "reader/batch/tensorize.h"
#include "reader/dwrf/crypto/decrypt.h"
#include "reader/dwrf/file_reader.h"
#include "reader/dwrf/slices.h"
#include "reader/pipeline/batching.h"
#include "reader/pipeline/cache/batch_cache.h"
#include "reader/pipeline/operator.h"

namespace headrace::reader {
namespace {

template <typename T>
T Take(Element* element) {
  return std::move(element->payload.As<T>());
}

// The accounts of `fetch` beside its own.
enum FetchAccount : size_t {
  kIo,        // requests to the storage
  kFooter,    // reads of the stripes' directories
  kStored,    // what the stripes hold, wanted or not
  kLocked,    // what is null for want of a key
  kChecksum,  // with source.checksum: reading it all once more
  kTierHit,
  kTierMiss,
  kRetry  // requests that repeat a failed one: remote storage only
};

void AddFetchAccounts(OperatorContext* context, OperatorPlan* plan) {
  const PipelineSpec& spec = *context->spec;
  const std::string& name = plan->spec.name;
  plan->AddAccount(name + ".io", "io");
  plan->AddAccount(name + ".footer", "io");
  plan->AddAccount(name + ".stored", "stored");
  plan->AddAccount(name + ".locked", "locked", context->has_locked);
  plan->AddAccount(name + ".checksum", "io", spec.verify_checksums);
  plan->AddAccount("tier.hit", "cache", context->tier != nullptr);
  plan->AddAccount("tier.miss", "cache", context->tier != nullptr);
  if (context->tier != nullptr && spec.tier.on_disk())
    context->tier->SetAccounts(hr_operator("tier.io", "tier", plan->stage),
                               hr_operator("tier.fill", "tier", plan->stage));
  if (context->cache != nullptr) {
    const uint32_t hits = hr_operator("cache.hit", "cache", plan->stage);
    context->cache->SetAccounts(hits, hr_operator("cache.miss", "cache", plan->stage));
  }
  plan->AddAccount(name + ".retry", "io", IsRemote(spec.table));
}

class FetchOperator final : public Operator {
 public:
  FetchOperator(const OperatorPlan& plan, const OperatorContext& context)
      : plan_(plan), context_(context) {}
  void Process(Element&& element, const Emit& emit) override {
    const Split split = Take<Split>(&element);
    const auto& file = context_.table->files[split.file_index];
    const ByteRange all = file->StripeBytes(split.stripe);
    const bool verifies = context_.spec->verify_checksums;
    const bool in_one_read =
        verifies && all.length <= kMostInOneRead && file->HasChecksum(split.stripe);
    if (verifies && !in_one_read) Verify(*file, split.stripe, {});
    dwrf::StripePlan plan;
    try {
      plan = Plan(*file, split.stripe);
    } catch (const Error&) {
      if (in_one_read) Verify(*file, split.stripe, {});  // perhaps because it is damaged
      throw;
    }
    if (plan_.Account(kLocked) != UINT32_MAX && plan.num_locked > 0)
      hr_done(plan_.Account(kLocked), plan.num_locked, split.rows, 0, 0);
    plan.first_row = split.first_row;  // of the table, where the plan knows the file only
    FetchedStripe fetched =
        ReadStreams(std::move(plan), file->source(), in_one_read ? all : ByteRange());
    if (in_one_read) {
      Verify(*file, split.stripe, fetched.whole);
      account::OperatorScope scope(plan_.Account(kIo));
      OfferTo(context_.tier, file->source(), &fetched);
    }
    element.received_bytes = fetched.read_bytes;
    element.bytes = fetched.wanted_bytes;
    element.payload = std::move(fetched);
    emit(std::move(element));
  }

 private:
  // Longer stripes are summed in a pass of their own, for the memory.
  static constexpr uint64_t kMostInOneRead = uint64_t{256} << 20;

  dwrf::StripePlan Plan(const dwrf::FileReader& file, uint32_t index) const {
    std::shared_ptr<const dwrf::Stripe> stripe;
    {
      Counted counted(plan_.Account(kFooter), UINT32_MAX);
      stripe = file.ReadStripe(index, &counted.figures);
    }
    hr_done(plan_.Account(kStored), 1, 0, 0, stripe->data_length);
    return dwrf::MakePlan(file, std::move(stripe), context_.spec->projection);
  }

  // Of `bytes`, or where there are none, of all that is read for it.
  void Verify(const dwrf::FileReader& file, uint32_t stripe, std::span<const uint8_t> bytes) const {
    account::OperatorScope scope(plan_.Account(kChecksum));
    Counted counted(plan_.Account(kChecksum), UINT32_MAX);
    try {
      const bool has_checksum = bytes.empty() ? file.VerifyChecksum(stripe, &counted.figures)
                                              : file.VerifyChecksum(stripe, bytes);
      if (!has_checksum) context_.counts->unchecked_stripes.fetch_add(1, std::memory_order_relaxed);
    } catch (const Error& error) {
      if (error.code() != ExitCode::kBadData) throw;
      throw Error(error.code(), error.fact(), error.where(),
                  "the file is damaged; source.on_corrupt = \"skip\" leaves such stripes out");
    }
  }

  FetchedStripe ReadStreams(dwrf::StripePlan plan, const Source& source,
                            const ByteRange& whole) const {
    account::OperatorScope scope(plan_.Account(kIo));
    Counted counted(plan_.Account(kIo), plan_.Account(kRetry));
    FetchOptions options = context_.spec->fetch;
    options.whole = whole;
    FetchedStripe fetched =
        Fetch(std::move(plan), source, options, context_.tier, &counted.figures);
    if (whole.length > 0) {
      // No gap made these reads longer: what is not wanted was read to be summed.
      const uint64_t others = fetched.read_bytes - fetched.wanted_bytes;
      fetched.read_bytes -= others;
      counted.figures.bytes -= std::min(others, counted.figures.bytes);
      hr_done(plan_.Account(kChecksum), 0, 0, 0, others);
    }
    if (context_.tier != nullptr) {
      const TierFigures& tier = fetched.tier;
      hr_done(plan_.Account(kTierHit), tier.hits, 0, 0, tier.hit_bytes);
      hr_done(plan_.Account(kTierMiss), tier.misses, 0, 0, tier.miss_bytes);
    }
    return fetched;
  }

  // Adds what was asked of the storage to accounts, also where an error ends it.
  struct Counted {
    Counted(uint32_t reads, uint32_t repeated) : reads(reads), repeated(repeated) {}
    ~Counted() {
      hr_done(reads, figures.requests, 0, 0, figures.bytes);
      if (repeated != UINT32_MAX) hr_done(repeated, figures.retries, 0, figures.discarded_bytes, 0);
    }
    Counted(const Counted&) = delete;
    uint32_t reads, repeated;
    ReadFigures figures;
  };

  const OperatorPlan& plan_;
  const OperatorContext& context_;
};

HR_OPERATOR("fetch", FetchOperator,
            {.order = 10,
             .takes = ElementForm::kSplit,
             .makes = ElementForm::kStored,
             .add_accounts = AddFetchAccounts});

class DecryptOperator final : public Operator {
 public:
  void Process(Element&& element, const Emit& emit) override {
    element.payload = dwrf::Decrypt(Take<FetchedStripe>(&element));
    emit(std::move(element));
  }
};

HR_OPERATOR("decrypt", DecryptOperator,
            {.order = 20,
             .takes = ElementForm::kStored,
             .makes = ElementForm::kStored,
             .presence = "optional"});

class DecompressOperator final : public Operator {
 public:
  void Process(Element&& element, const Emit& emit) override {
    dwrf::UnpackedStripe unpacked = dwrf::Decompress(Take<FetchedStripe>(&element));
    element.bytes = unpacked.unpacked_bytes;
    element.payload = std::move(unpacked);
    emit(std::move(element));
  }
};

HR_OPERATOR("decompress", DecompressOperator,
            {.order = 30, .takes = ElementForm::kStored, .makes = ElementForm::kPlain});

// An account for each group, for as many as a report can show; the others share one.
std::vector<uint32_t> DedupAccounts(const DedupPlan& plan, uint32_t stage) {
  constexpr size_t kOwn = 48;
  std::vector<uint32_t> accounts;
  for (size_t g = 0; g < plan.groups.size(); ++g) {
    const std::string name = g < kOwn || plan.groups.size() == kOwn + 1
                                 ? "dedup." + plan.groups[g].name
                                 : "dedup.others";
    accounts.push_back(hr_operator(name.c_str(), "dedup", stage));
  }
  return accounts;
}

class DecodeOperator final : public Operator {
 public:
  DecodeOperator(const OperatorPlan&, const OperatorContext& context) : context_(context) {
    if (!context.dedup) return;
    groups_.emplace();
    groups_->scope = context.dedup->scope;
    for (size_t g = 0; g < context.dedup->groups.size(); ++g) {
      const DedupFactor& group = context.dedup->groups[g];
      groups_->groups.push_back({group.name, group.keys, context.dedup_accounts[g]});
    }
  }
  void Process(Element&& element, const Emit& emit) override {
    dwrf::UnpackedStripe unpacked = Take<dwrf::UnpackedStripe>(&element);
    const bool wants_slices = SliceRows(*context_.spec) > 0;
    const bool is_ordinary = !unpacked.plan.maps.empty();
    if (wants_slices && is_ordinary)
      context_.counts->ordinary_stripes.fetch_add(1, std::memory_order_relaxed);
    if (context_.dictionaries) {
      if (const uint64_t features = context_.dictionaries->CountLookedUp(unpacked.plan))
        context_.counts->looked_up_dictionaries.fetch_add(features, std::memory_order_relaxed);
    }
    dwrf::DecodedStripe decoded =
        wants_slices && !is_ordinary
            ? Slices(element, std::move(unpacked))
            : dwrf::Decode(std::move(unpacked), groups_ ? &*groups_ : nullptr, Dictionaries());
    element.bytes = decoded.decoded_bytes;
    element.payload = std::move(decoded);
    emit(std::move(element));
  }

 private:
  dwrf::DecodedStripe Slices(const Element& element, dwrf::UnpackedStripe&& unpacked) const {
    const std::vector<uint8_t> wanted =
        WantedRows(element, unpacked.plan.first_row, unpacked.plan.rows);
    dwrf::SliceOptions options;
    options.slice_rows = SliceRows(*context_.spec);
    options.spare = Spare(0);
    std::vector<double> group_spare;
    if (groups_) {
      options.groups = &*groups_;
      for (size_t g = 0; g < groups_->groups.size(); ++g) group_spare.push_back(Spare(1 + g));
      options.group_spare = group_spare;
    }
    options.wanted = wanted;
    options.filters = context_.spec->filters;
    options.dictionaries = Dictionaries();
    return dwrf::DecodeSlices(std::move(unpacked), options);
  }
  const dwrf::DictionaryRequest* Dictionaries() const {
    return context_.dictionaries ? &context_.dictionaries->request : nullptr;
  }
  double Spare(size_t slab) const {
    return context_.slab_spare[slab].load(std::memory_order_relaxed) / 1000.0;
  }

  const OperatorContext& context_;
  std::optional<dwrf::GroupRequests> groups_;
};

HR_OPERATOR("decode", DecodeOperator,
            {.order = 40,
             .takes = ElementForm::kPlain,
             .makes = ElementForm::kDecoded,
             .add_accounts = [](OperatorContext* context, OperatorPlan* plan) {
               if (context->dedup)
                 context->dedup_accounts = DedupAccounts(*context->dedup, plan->stage);
             }});

// Deduplicates what the decoding could not, each group under its own account.
class Deduplicator {
 public:
  explicit Deduplicator(const OperatorContext& context)
      : accounts_(context.dedup_accounts), plan_(context.dedup) {}
  void Run(FlatMapBatch* batch) const {
    for (size_t g = 0; plan_ && g < plan_->groups.size(); ++g) {
      if (HasGroup(*batch, plan_->groups[g].name)) continue;
      account::OperatorScope scope(accounts_[g]);
      const DedupBytes bytes = Deduplicate(*plan_, g, batch);
      scope.Done(batch->rows, bytes.expanded, bytes.unique);
    }
    if (plan_) Order(batch);
  }

 private:
  // Which groups were made while decoding differs between stripes; their order must not.
  void Order(FlatMapBatch* batch) const {
    std::vector<DedupGroup> groups(batch->groups.size());
    std::vector<int32_t> place(batch->groups.size());
    for (size_t g = 0; g < batch->groups.size(); ++g) {
      size_t to = 0;
      while (plan_->groups[to].name != batch->groups[g].name) ++to;
      place[g] = static_cast<int32_t>(to);
      groups[to] = std::move(batch->groups[g]);
    }
    batch->groups = std::move(groups);
    for (SparseColumn& column : batch->sparse)
      if (column.group >= 0) column.group = place[static_cast<size_t>(column.group)];
  }
  static bool HasGroup(const FlatMapBatch& batch, const std::string& name) {
    return std::any_of(batch.groups.begin(), batch.groups.end(),
                       [&](const DedupGroup& group) { return group.name == name; });
  }

  const std::vector<uint32_t>& accounts_;
  std::shared_ptr<const DedupPlan> plan_;
};

// One batch of a stripe, or one of each of its slices.
class ExtractOperator final : public Operator {
 public:
  ExtractOperator(const OperatorPlan&, const OperatorContext& context)
      : deduplicate_(context), context_(context), spec_(*context.spec) {}
  void Process(Element&& element, const Emit& emit) override {
    slice_ = 0;
    const uint64_t slices = dwrf::NumSlices(element.origin.count, SliceRows(spec_));
    if (auto* nothing = element.payload.Get<FlatMapBatch>()) {
      // A stripe that could not be read; it takes the place of its slices.
      EmitBatch(element, std::move(*nothing), emit);
      while (slice_ < slices) EmitBatch(element, FlatMapBatch(), emit);
      return;
    }
    auto decoded = Take<dwrf::DecodedStripe>(&element);
    if (decoded.sliced) return EmitSlices(element, &decoded, emit);
    FlatMapBatch batch = dwrf::Extract(std::move(decoded));
    std::vector<uint8_t> keep;
    if (!spec_.filters.empty()) {
      keep.assign(batch.rows, 1);
      ApplyFilters(spec_.filters, batch, keep);
    }
    const uint64_t first_row = batch.first_row;
    MarkOrigin(element, &batch);
    const uint64_t wanted = batch.rows;
    KeepChosen(&batch, keep, first_row);
    CountDropped(wanted - batch.rows);
    deduplicate_.Run(&batch);
    EmitBatch(element, std::move(batch), emit);
    // Where stripes are numbered by their slices, a whole one stands for all of its own.
    while (slice_ < slices) EmitBatch(element, FlatMapBatch(), emit);
  }
  bool TakesEmpty() const override { return true; }

 private:
  // Drops the rows that keep[row number - first_row] does not have.
  static void KeepChosen(FlatMapBatch* batch, const std::vector<uint8_t>& keep,
                         uint64_t first_row) {
    if (keep.empty()) return;
    std::vector<uint8_t> chosen(batch->rows);
    for (uint64_t row = 0; row < batch->rows; ++row)
      chosen[row] = keep[batch->RowId(row) - first_row];
    KeepRows(batch, chosen);
  }

  void EmitSlices(const Element& element, dwrf::DecodedStripe* decoded, const Emit& emit) {
    FlatMapBatch rows;  // where the kept rows come from, without columns
    rows.rows = decoded->plan.rows;
    rows.first_row = decoded->plan.first_row;
    MarkOrigin(element, &rows);
    const uint64_t wanted = rows.rows;
    KeepChosen(&rows, decoded->keep, decoded->plan.first_row);
    CountDropped(wanted - rows.rows);
    HR_CHECK(rows.rows == decoded->kept_rows, "slices of other rows");
    const uint64_t slices = decoded->slices.size();
    while (slice_ < slices) {
      FlatMapBatch batch = dwrf::ExtractSlice(decoded, slice_), origin;
      // What rows that were dropped settle goes with the first slice, if no row is left.
      if (batch.rows > 0 || slice_ == 0)
        AppendRows(&origin, rows, std::min(slice_ * decoded->slice_rows, rows.rows), batch.rows);
      batch.split_id = rows.split_id;
      batch.first_row = origin.first_row;
      batch.row_ids = std::move(origin.row_ids);
      batch.spans = std::move(origin.spans);
      EmitBatch(element, std::move(batch), emit);
    }
  }

  void EmitBatch(const Element& element, FlatMapBatch&& batch, const Emit& emit) {
    Element out;
    out.sequence = element.first_slice + slice_++;
    out.seed = element.seed;
    out.origin = element.origin;
    out.wanted = element.wanted;
    out.memory = element.memory;
    out.rows = batch.rows;
    out.bytes = batch.MemoryBytes();
    out.payload = std::move(batch);
    emit(std::move(out));
  }

  void CountDropped(uint64_t rows) const {
    if (rows > 0) context_.counts->filtered_rows.fetch_add(rows, std::memory_order_relaxed);
  }

  Deduplicator deduplicate_;
  const OperatorContext& context_;
  const PipelineSpec& spec_;
  uint64_t slice_ = 0;
};

HR_OPERATOR("extract", ExtractOperator,
            {.order = 50, .takes = ElementForm::kDecoded, .makes = ElementForm::kRows});

// Takes every batch apart into a map per row and together again: what readers paid that handed rows
// on as maps. The batch stays as it is.
class RowMapOperator final : public Operator {
 public:
  RowMapOperator(const OperatorPlan&, const OperatorContext& context) {
    const Schema& schema = context.table->files[0]->schema();
    for (const dwrf::FeatureRequest& feature : context.spec->projection.features) {
      if (feature.key.is_text)
        throw Error(ExitCode::kUsage,
                    fmt::format("the keys of map '{}' are texts; rowmap takes integers",
                                Printable(feature.column)),
                    context.spec->path);
      if (maps_.empty() || maps_.back().name != feature.column) {
        const SchemaNode& map = schema.node(*schema.FindColumn(feature.column));
        const TypeKind value = schema.node(map.children[1]).kind;
        maps_.push_back({feature.column,
                         value == TypeKind::kList  ? FeatureKind::kSparse
                         : value == TypeKind::kMap ? FeatureKind::kWeightedSparse
                                                   : FeatureKind::kDense,
                         {}});
      }
      maps_.back().features.push_back({dwrf::FeatureName(feature), feature.key.integer});
    }
  }
  void Process(Element&& element, const Emit& emit) override {
    FlatMapBatch batch = Take<FlatMapBatch>(&element);
    RowMapBatch rows;
    rows.rows = batch.rows;
    for (const Map& map : maps_)
      rows.maps.push_back(ToRowMaps(batch, map.name, map.kind, map.features));
    FlatMapBatch out;
    out.rows = batch.rows;
    out.split_id = batch.split_id;
    out.first_row = batch.first_row;
    out.row_ids = std::move(batch.row_ids);
    out.spans = std::move(batch.spans);
    out.scalars = std::move(batch.scalars);
    for (size_t i = 0; i < maps_.size(); ++i) ToColumns(rows.maps[i], maps_[i].features, &out);
    element.bytes = out.MemoryBytes();
    element.payload = std::move(out);
    emit(std::move(element));
  }

 private:
  struct Map {
    std::string name;
    FeatureKind kind;
    std::vector<RowMapFeature> features;
  };
  std::vector<Map> maps_;  // runs of features of one map
};

HR_OPERATOR("rowmap", RowMapOperator,
            {.order = 60,
             .takes = ElementForm::kRows,
             .makes = ElementForm::kRows,
             .presence = "optional"});

// The accounts of `transform` beside its own.
enum TransformAccount : size_t {
  kDictionary,  // what was done on dictionaries
  kTransforms   // and on: of each entry of the TransformPlan
};

// Runs the whole transform list; each kind of transform has its own account, nested in this
// operator's.
class TransformOperator final : public Operator {
 public:
  TransformOperator(const OperatorPlan& plan, const OperatorContext& context)
      : plan_(plan),
        transforms_(context.transforms),
        has_dictionaries_(context.dictionaries != nullptr) {}
  void Process(Element&& element, const Emit& emit) override {
    auto& batch = element.payload.As<FlatMapBatch>();
    DictionaryFigures figures;
    for (size_t i = 0; transforms_ && i < transforms_->size(); ++i) {
      account::OperatorScope scope(plan_.Account(kTransforms + i));
      transforms_->Apply(i, batch, BestInstructionSet(), &figures);
      scope.Done(batch.rows, 0, 0);
    }
    if (has_dictionaries_) {
      account::OperatorScope scope(plan_.Account(kDictionary));
      transforms_->Finish(batch);
      // Steps; bytes in: of the ids they were for; out: of the entries that they transformed.
      hr_done(plan_.Account(kDictionary), figures.steps, figures.steps > 0 ? batch.rows : 0,
              figures.ids * sizeof(int64_t), figures.entries * sizeof(int64_t));
    }
    element.rows = batch.rows;
    element.bytes = batch.MemoryBytes();
    emit(std::move(element));
  }

 private:
  const OperatorPlan& plan_;
  std::shared_ptr<const TransformPlan> transforms_;
  const bool has_dictionaries_;
};

HR_OPERATOR("transform", TransformOperator,
            {.order = 70,
             .takes = ElementForm::kRows,
             .makes = ElementForm::kRows,
             .presence = "optional",
             .add_accounts =
                 [](OperatorContext* context, OperatorPlan* plan) {
                   plan->AddAccount(plan->spec.name + ".dictionary", "dictionary",
                                    context->dictionaries != nullptr);
                 },
             // Transforms of one kind share an account: a report of hundreds of features reads by
             // what they do.
             .add_inner_accounts =
                 [](OperatorContext* context, OperatorPlan* plan) {
                   for (size_t i = 0; context->transforms && i < context->transforms->size(); ++i)
                     plan->AddAccount(context->transforms->name(i), "transform");
                 }});

// Cuts and joins rows into batches of batch_rows, or of worker_rows before rebatch. With file order
// it runs on one thread and numbers its batches.
class BatchOperator final : public Operator {
 public:
  BatchOperator(const OperatorPlan&, const OperatorContext& context)
      : batch_rows_(WorkerRows(*context.spec)), ledger_(context.memory) {}
  void Process(Element&& element, const Emit& emit) override {
    FlatMapBatch rows = Take<FlatMapBatch>(&element);
    if (rows.rows == batch_rows_ && pending_.rows == 0 && pending_.spans.empty()) {
      pending_ = std::move(rows);  // a batch already: nothing to copy
      memory_ = std::move(element.memory);
      return Flush(emit);
    }
    if (rows.rows == 0) {
      pending_.spans.insert(pending_.spans.end(), rows.spans.begin(), rows.spans.end());
      return;
    }
    for (uint64_t first = 0; first < rows.rows;) {
      const uint64_t part = std::min(rows.rows - first, batch_rows_ - pending_.rows);
      AppendRows(&pending_, rows, first, part);
      first += part;
      if (ledger_ != nullptr) Charge();
      if (pending_.rows == batch_rows_) Flush(emit);
    }
  }
  void Finish(const Emit& emit) override {
    if (pending_.rows > 0 || !pending_.spans.empty()) Flush(emit);
  }
  bool TakesEmpty() const override { return true; }

 private:
  void Flush(const Emit& emit) {
    Element out = ElementOf(std::move(pending_), sequence_++);
    if (is_held_) memory_->Leave();
    is_held_ = false;
    out.memory = std::move(memory_);
    pending_ = FlatMapBatch();
    emit(std::move(out));
  }
  // What waits is charged with the tensors that will be made of it.
  void Charge() {
    if (!is_held_) memory_ = ledger_->Hold();
    is_held_ = true;
    memory_->Set(pending_.MemoryBytes() * 5 / 2);
  }

  uint64_t batch_rows_;
  MemoryLedger* const ledger_;
  std::shared_ptr<MemoryCharge> memory_;  // of pending_
  bool is_held_ = false;                  // not a split's
  uint64_t sequence_ = 0;
  FlatMapBatch pending_;
};

HR_OPERATOR("batch", BatchOperator,
            {.order = 90,
             .takes = ElementForm::kRows,
             .makes = ElementForm::kRows,
             .presence = "optional",
             .joins_rows = true});

// The account of `tensorize` beside its own: ids and weights copied since they were decoded.
constexpr size_t kCopy = 0;

class TensorizeOperator final : public Operator {
 public:
  TensorizeOperator(const OperatorPlan& plan, const OperatorContext& context)
      : plan_(plan), context_(context) {}
  void Process(Element&& element, const Emit& emit) override {
    TensorizeFigures figures;
    const auto& batch = element.payload.As<FlatMapBatch>();
    std::vector<double> spare = {batch.slabs.spare};  // as the pipeline's: and of each group
    for (const Slabs& slabs : batch.group_slabs) spare.push_back(slabs.spare);
    TensorBatch tensors = Tensorize(Take<FlatMapBatch>(&element), context_.spec->label, &figures);
    hr_done(plan_.Account(kCopy), figures.copied_bytes > 0, 0, 0, figures.copied_bytes);
    if (figures.missing_spare > 0) MakeRoom(0, spare[0], figures.missing_spare);
    for (size_t g = 0; g < figures.group_missing.size(); ++g)
      if (figures.group_missing[g] > 0) MakeRoom(1 + g, spare[1 + g], figures.group_missing[g]);
    element.bytes = tensors.MemoryBytes();
    element.payload = std::move(tensors);
    emit(std::move(element));
  }

 private:
  // The next slabs of this kind get what this one, with room for `spare`, had too little, within
  // reason. Slabs on their way were made before that is known: what they miss is not on top of it.
  void MakeRoom(size_t slab, double spare, double missing) const {
    std::atomic<uint32_t>& room = context_.slab_spare[slab];
    const auto wanted =
        static_cast<uint32_t>(std::min(1000 * ((1 + spare) * (1 + missing) - 1) + 20, 4000.0));
    uint32_t now = room.load(std::memory_order_relaxed);
    while (now < wanted && !room.compare_exchange_weak(now, wanted, std::memory_order_relaxed)) {
    }
  }

  const OperatorPlan& plan_;
  const OperatorContext& context_;
};

HR_OPERATOR("tensorize", TensorizeOperator,
            {.order = 100,
             .takes = ElementForm::kRows,
             .makes = ElementForm::kTensors,
             .presence = "optional",
             .add_accounts = [](OperatorContext*, OperatorPlan* plan) {
               plan->AddAccount(plan->spec.name + ".copy", "copy");
             }});

}  // namespace
}  // namespace headrace::reader
