#include "reader/pipeline/batching.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "base/check.h"
#include "reader/batch/gather_rows.h"
#include "reader/batch/rebatch.h"
#include "reader/batch/tensorize.h"

namespace headrace::reader {
namespace {

class ShuffleOperator final : public Operator {
 public:
  explicit ShuffleOperator(const PipelineSpec& spec)
      : window_(spec.shuffle_rows),
        chunk_(WorkerRows(spec)),
        by_row_number_(spec.file_order),
        seed_(MixBits(spec.seed ^ 0x73687566666c65)) {}

  bool TakesEmpty() const override { return true; }

  void Process(Element&& element, const Emit& emit) override {
    const FlatMapBatch batch = std::move(std::get<FlatMapBatch>(element.payload));
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
  }

  void Finish(const Emit& emit) override {
    if (pending_.rows > 0 || !pending_.spans.empty()) Flush(emit);
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
      emit(ElementOf(std::move(out), sequence_++));
    }
    if (window.rows > 0) return;
    FlatMapBatch out;
    out.spans = window.spans;
    emit(ElementOf(std::move(out), sequence_++));
  }

  const uint64_t window_, chunk_;
  const bool by_row_number_;
  const uint64_t seed_;
  uint64_t sequence_ = 0;
  FlatMapBatch pending_;
  std::pair<uint64_t, uint64_t> pending_window_;  // epoch and number, with file order
};

class RebatchOperator final : public Operator {
 public:
  explicit RebatchOperator(const PipelineSpec& spec) : rebatcher_(spec.batch_rows) {}

  bool TakesEmpty() const override { return true; }

  void Process(Element&& element, const Emit& emit) override {
    if (auto* empty = std::get_if<FlatMapBatch>(&element.payload)) {
      TensorBatch spans;
      spans.spans = std::move(empty->spans);
      rebatcher_.Add(std::move(spans),
                     [&](TensorBatch&& out) { emit(ElementOf(std::move(out), sequence_++)); });
      return;
    }
    auto* batch = std::get_if<TensorBatch>(&element.payload);
    HR_CHECK(batch != nullptr, "rebatch takes tensor batches; the spec's order check failed");
    rebatcher_.Add(std::move(*batch),
                   [&](TensorBatch&& out) { emit(ElementOf(std::move(out), sequence_++)); });
  }

  void Finish(const Emit& emit) override {
    rebatcher_.Finish([&](TensorBatch&& out) { emit(ElementOf(std::move(out), sequence_++)); });
  }

 private:
  Rebatcher rebatcher_;
  uint64_t sequence_ = 0;
};

}  // namespace

std::unique_ptr<Operator> MakeShuffle(const OperatorContext& context) {
  return std::make_unique<ShuffleOperator>(*context.spec);
}

std::unique_ptr<Operator> MakeRebatch(const OperatorContext& context) {
  return std::make_unique<RebatchOperator>(*context.spec);
}

uint64_t WorkerRows(const PipelineSpec& spec) {
  return spec.worker_rows != 0 ? spec.worker_rows : spec.batch_rows;
}

}  // namespace headrace::reader
