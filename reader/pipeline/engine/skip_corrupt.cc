#include "reader/pipeline/engine/skip_corrupt.h"

#include <utility>
#include <vector>

#include "base/error.h"
#include "reader/dwrf/slices.h"
#include "reader/pipeline/batching.h"

namespace headrace::reader {
namespace {

// Takes rows that went on out of the spans `left`, which are ascending.
void TakeOut(const std::vector<RowSpan>& gone, std::vector<RowSpan>* left) {
  for (const RowSpan& span : gone) {
    const uint64_t end = span.first + span.count;
    std::erase_if(*left, [&](const RowSpan& part) { return part.first + part.count <= end; });
    if (left->empty() || left->front().first >= end) continue;
    left->front().count -= end - left->front().first;
    left->front().first = end;
  }
}

class SkippingOperator final : public Operator {
 public:
  // `slice_rows`, of an operator whose elements are the slices of a stripe: how many rows they
  // have.
  SkippingOperator(std::unique_ptr<Operator> op, bool makes_slices, uint64_t slice_rows,
                   Progress* progress)
      : op_(std::move(op)),
        makes_slices_(makes_slices),
        slice_rows_(slice_rows),
        progress_(progress) {}

  void Process(Element&& element, const Emit& emit) override {
    Element empty;
    empty.sequence = element.sequence;
    empty.first_slice = element.first_slice;
    empty.origin = element.origin;
    empty.memory = element.memory;
    uint64_t made = 0;  // elements of the stripe
    std::vector<RowSpan> left =
        element.wanted ? *element.wanted : std::vector<RowSpan>{element.origin};
    bool is_below = false;  // the error is of an operator further down
    try {
      op_->Process(std::move(element), [&](Element&& out) {
        TakeOut(SpansOf(out), &left);  // rows that went on before the error are not lost
        is_below = true;
        ++made;
        emit(std::move(out));
        is_below = false;
      });
    } catch (const Error& error) {
      if (is_below || error.code() != ExitCode::kBadData) throw;
      LeaveOut(std::move(empty), std::move(left), made, error, emit);
    }
  }
  void Finish(const Emit& emit) override { op_->Finish(emit); }
  bool TakesEmpty() const override { return op_->TakesEmpty(); }
  bool TakesCached() const override { return op_->TakesCached(); }

 private:
  void LeaveOut(Element&& empty, std::vector<RowSpan>&& left, uint64_t made, const Error& why,
                const Emit& emit) const {
    FlatMapBatch nothing;
    uint64_t rows = 0;
    for (RowSpan& part : left) {
      rows += part.count;
      part.rows = 0;
      if (part.count > 0) nothing.spans.push_back(part);
    }
    progress_->LeftOut(rows, why.what());
    if (empty.memory) empty.memory->DoesLess();
    // Not the whole split, so that no cache keeps it.
    empty.wanted = std::make_shared<const std::vector<RowSpan>>(std::move(left));
    empty.payload = std::move(nothing);
    if (!makes_slices_) return emit(std::move(empty));
    // A stripe has as many places as it has slices.
    const uint64_t slices = dwrf::NumSlices(empty.origin.count, slice_rows_);
    for (uint64_t slice = made; slice < slices; ++slice) {
      Element place;
      place.sequence = empty.first_slice + slice;
      place.origin = empty.origin;
      place.wanted = empty.wanted;
      place.payload = std::exchange(empty.payload.As<FlatMapBatch>(), FlatMapBatch());
      emit(std::move(place));
    }
  }

  std::unique_ptr<Operator> op_;
  const bool makes_slices_;
  const uint64_t slice_rows_;
  Progress* const progress_;
};

}  // namespace

std::unique_ptr<Operator> WithSkipping(const OperatorPlan& plan, const PipelineSpec& spec,
                                       Progress* progress, std::unique_ptr<Operator> op) {
  const OperatorEntry& entry = EntryOf(plan.spec);
  if (!spec.skip_corrupt || IsSynthetic(entry) || entry.takes >= ElementForm::kRows) return op;
  return std::make_unique<SkippingOperator>(std::move(op), entry.makes == ElementForm::kRows,
                                            SliceRows(spec), progress);
}

}  // namespace headrace::reader
