// Cuts and joins rows into batches of batch_rows, or of worker_rows before rebatch. With file order
// it runs on one thread and numbers its batches. For a service it cuts at the ends of units.
#include <algorithm>
#include <memory>
#include <utility>

#include "reader/batch/tensorize.h"
#include "reader/pipeline/batching.h"
#include "reader/pipeline/operator.h"

namespace headrace::reader {
namespace {

class BatchOperator final : public Operator {
 public:
  BatchOperator(const OperatorPlan&, const OperatorContext& context)
      : batch_rows_(WorkerRows(*context.spec)),
        unit_rows_(context.spec->unit_rows),
        ledger_(context.memory) {}
  void Process(Element&& element, const Emit& emit) override {
    if (unit_rows_ > 0) return CutUnits(std::move(element), emit);
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
  // Each unit's rows on their own, and with them what they settle: whoever gets a unit gets all of
  // it and nothing of its neighbours, not even rows that were dropped.
  void CutUnits(Element&& element, const Emit& emit) {
    FlatMapBatch rows = Take<FlatMapBatch>(&element);
    const auto unit_of = [&](uint64_t row) { return (row - element.origin.first) / unit_rows_; };
    if (rows.spans.size() == 1) {
      const RowSpan& span = rows.spans[0];
      if (unit_of(span.first) == unit_of(span.first + span.count - 1)) {  // nothing to copy
        Element out = ElementOf(std::move(rows), sequence_++);
        out.memory = std::move(element.memory);
        return emit(std::move(out));
      }
    }
    uint64_t row = 0;
    for (const RowSpan& span : rows.spans) {
      const uint64_t split = element.origin.first, span_rows = row + span.rows;
      for (uint64_t first = span.first, end = span.first + span.count; first < end;) {
        const uint64_t next = std::min(end, split + (unit_of(first) + 1) * unit_rows_);
        uint64_t until = row;
        while (until < span_rows && rows.RowId(until) < next) ++until;
        FlatMapBatch unit;
        if (until > row) AppendRows(&unit, rows, row, until - row);
        unit.split_id = rows.split_id;
        unit.spans = {{span.epoch, span.split, first, next - first, until - row}};
        Element out = ElementOf(std::move(unit), sequence_++);
        out.memory = element.memory;
        emit(std::move(out));
        row = until;
        first = next;
      }
    }
  }
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

  uint64_t batch_rows_, unit_rows_;
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

}  // namespace
}  // namespace headrace::reader
