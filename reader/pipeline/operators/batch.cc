// Cuts and joins rows into batches of batch_rows, or of worker_rows before rebatch. With file order
// it runs on one thread and numbers its batches.
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

}  // namespace
}  // namespace headrace::reader
