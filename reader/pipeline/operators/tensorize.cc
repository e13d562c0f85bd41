// Lays out a dense row-major matrix and keyed jagged tensors.
#include "reader/batch/tensorize.h"

#include <algorithm>
#include <atomic>
#include <utility>
#include <vector>

#include "probes/account/account.h"
#include "reader/pipeline/operator.h"

namespace headrace::reader {
namespace {

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
