// Puts the rows of windows of shuffle_rows rows into a random order that depends on the seed, the
// epoch and the rows alone. With file order a window is rows [k W, (k + 1) W) of the table,
// whatever was dropped of them: the order is the same in every run, also in one that goes on from a
// checkpoint. Otherwise it is W rows as they come to the thread.
#include <algorithm>
#include <numeric>
#include <span>
#include <utility>
#include <vector>

#include "base/mix_bits.h"
#include "reader/batch/gather_rows.h"
#include "reader/batch/tensorize.h"
#include "reader/pipeline/batching.h"
#include "reader/pipeline/operator.h"
#include "reader/pipeline/operators/waiting.h"

namespace headrace::reader {
namespace {

class ShuffleOperator final : public Operator {
 public:
  ShuffleOperator(const OperatorPlan&, const OperatorContext& context)
      : waiting_(context.memory),
        window_(context.spec->shuffle_rows),
        chunk_(WorkerRows(*context.spec)),
        by_row_number_(context.spec->file_order),
        seed_(MixBits(context.spec->seed ^ 0x73687566666c65)) {}

  bool TakesEmpty() const override { return true; }

  void Process(Element&& element, const Emit& emit) override {
    const FlatMapBatch batch = std::move(element.payload.As<FlatMapBatch>());
    if (batch.rows == 0) {
      pending_.spans.insert(pending_.spans.end(), batch.spans.begin(), batch.spans.end());
      return;
    }
    if (!by_row_number_) {
      for (uint64_t first = 0; first < batch.rows;) {
        const uint64_t part = std::min(batch.rows - first, window_ - pending_.rows);
        AppendRows(&pending_, batch, first, part);
        first += part;
        if (pending_.rows == window_) Flush(emit);
      }
      waiting_.Set(2 * pending_.MemoryBytes());
      return;
    }
    const std::vector<uint64_t> epochs = Epochs(batch);
    for (uint64_t first = 0; first < batch.rows;) {
      const std::pair window(epochs[first], batch.RowId(first) / window_);
      uint64_t end = first + 1;
      while (end < batch.rows && std::pair(epochs[end], batch.RowId(end) / window_) == window)
        ++end;
      if (pending_.rows > 0 && window != pending_window_) Flush(emit);
      pending_window_ = window;
      AppendRows(&pending_, batch, first, end - first);
      first = end;
    }
    waiting_.Set(2 * pending_.MemoryBytes());
  }

  void Finish(const Emit& emit) override {
    if (pending_.rows > 0 || !pending_.spans.empty()) Flush(emit);
    waiting_.Set(0);
  }

 private:
  static std::vector<uint64_t> Epochs(const FlatMapBatch& batch) {
    std::vector<uint64_t> epochs;
    for (const RowSpan& span : batch.spans) epochs.insert(epochs.end(), span.rows, span.epoch);
    epochs.resize(batch.rows);
    return epochs;
  }

  void Flush(const Emit& emit) {
    const FlatMapBatch window = std::exchange(pending_, FlatMapBatch());
    const std::vector<uint64_t> epochs = Epochs(window);
    std::vector<std::pair<uint64_t, uint32_t>> keys(window.rows);
    for (uint32_t row = 0; row < window.rows; ++row)
      keys[row] = {MixBits(MixBits(seed_ ^ epochs[row]) ^ window.RowId(row)), row};
    std::sort(keys.begin(), keys.end());
    std::vector<uint32_t> order;
    for (const auto& [key, row] : keys) order.push_back(row);
    SpansByRow spans = SplitSpans(window);
    const std::span<const uint32_t> rows(order);
    for (uint64_t first = 0; first < window.rows; first += chunk_) {
      const uint64_t count = std::min(chunk_, window.rows - first);
      FlatMapBatch out = GatherRows(window, rows.subspan(first, count), spans);
      if (first + count == window.rows)
        out.spans.insert(out.spans.end(), spans.empty.begin(), spans.empty.end());
      EmitBatch(std::move(out), emit);
    }
    if (window.rows > 0) return;
    FlatMapBatch out;
    out.spans = window.spans;
    EmitBatch(std::move(out), emit);
  }

  void EmitBatch(FlatMapBatch&& batch, const Emit& emit) {
    Element out = ElementOf(std::move(batch), sequence_++);
    out.memory = waiting_.Leave(5 * out.bytes / 2);
    emit(std::move(out));
  }

  Waiting waiting_;
  const uint64_t window_, chunk_;
  const bool by_row_number_;
  const uint64_t seed_;
  uint64_t sequence_ = 0;
  FlatMapBatch pending_;
  std::pair<uint64_t, uint64_t> pending_window_;  // epoch and number, with file order
};

HR_OPERATOR("shuffle", ShuffleOperator,
            {.order = 80,
             .takes = ElementForm::kRows,
             .makes = ElementForm::kRows,
             .presence = "optional",
             .joins_rows = true});

}  // namespace
}  // namespace headrace::reader
