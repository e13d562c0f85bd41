// Completes row-aligned columns and drops the rows that [[filter]] drops; groups of [dedup] that
// were not made while decoding are made here.
#include <algorithm>
#include <atomic>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/check.h"
#include "probes/account/scope.h"
#include "reader/batch/keep_rows.h"
#include "reader/batch/tensorize.h"
#include "reader/dwrf/feature_stream.h"
#include "reader/dwrf/slices.h"
#include "reader/pipeline/batching.h"
#include "reader/pipeline/dedup_plan.h"
#include "reader/pipeline/operator.h"

namespace headrace::reader {
namespace {

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

}  // namespace
}  // namespace headrace::reader
