// Joins and cuts the tensor batches of the workers to batch_rows.
#include "reader/batch/rebatch.h"

#include <utility>

#include "reader/pipeline/batching.h"
#include "reader/pipeline/operator.h"
#include "reader/pipeline/operators/waiting.h"

namespace headrace::reader {
namespace {

class RebatchOperator final : public Operator {
 public:
  RebatchOperator(const OperatorPlan&, const OperatorContext& context)
      : waiting_(context.memory), rebatcher_(context.spec->batch_rows) {}

  bool TakesEmpty() const override { return true; }

  void Process(Element&& element, const Emit& emit) override {
    if (auto* empty = element.payload.Get<FlatMapBatch>()) {
      TensorBatch spans;
      spans.spans = std::move(empty->spans);
      rebatcher_.Add(std::move(spans), [&](TensorBatch&& out) { EmitBatch(std::move(out), emit); });
      return;
    }
    rebatcher_.Add(std::move(element.payload.As<TensorBatch>()),
                   [&](TensorBatch&& out) { EmitBatch(std::move(out), emit); });
    // Bytes of the waiting rows, and as many for the batch that they will become.
    if (waiting_.is_counted()) waiting_.Set(2 * rebatcher_.MemoryBytes());
  }

  void Finish(const Emit& emit) override {
    rebatcher_.Finish([&](TensorBatch&& out) { EmitBatch(std::move(out), emit); });
    waiting_.Set(0);
  }

 private:
  void EmitBatch(TensorBatch&& batch, const Emit& emit) {
    Element out = ElementOf(std::move(batch), sequence_++);
    out.memory = waiting_.Leave(out.bytes);
    emit(std::move(out));
  }

  Waiting waiting_;
  Rebatcher rebatcher_;
  uint64_t sequence_ = 0;
};

HR_OPERATOR("rebatch", RebatchOperator,
            {.order = 110,
             .takes = ElementForm::kTensors,
             .makes = ElementForm::kTensors,
             .presence = "optional, behind tensorize",
             .joins_rows = true});

}  // namespace
}  // namespace headrace::reader
