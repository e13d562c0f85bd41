// Rebatcher: tensor batches of any size in, batches of exactly `rows` rows out, in the same order.
// Workers make small batches, which need little memory and spread over threads; a training step
// takes large ones (RecD, arXiv:2211.05239; Zhao et al., arXiv:2108.09373: rebatching in the
// client).
//
// Each value is copied once, when its batch is full; a batch that has the right size when nothing
// is pending passes untouched; deduplicated features of the others are expanded. Not thread-safe.
#pragma once
#include <cstdint>
#include <functional>
#include <vector>

#include "reader/batch/tensor_batch.h"

namespace headrace::reader {

class Rebatcher {
 public:
  using Emit = std::function<void(TensorBatch&&)>;

  explicit Rebatcher(uint64_t rows) : rows_(rows) {}
  // All batches have the same features; a batch of no rows brings only its spans.
  void Add(TensorBatch&& batch, const Emit& emit);
  // What is left, of fewer rows; of none where there are only spans to hand on.
  void Finish(const Emit& emit);
  // Of all batches that rows of wait here.
  uint64_t MemoryBytes() const;

 private:
  struct Piece {  // rows [first, end) of batch
    TensorBatch batch;
    uint64_t first = 0;
  };
  // The first `rows` rows of the pieces, with the spans of empty pieces among and, if `tail`,
  // behind them.
  TensorBatch Join(uint64_t rows, bool tail);

  uint64_t rows_;
  uint64_t pending_rows_ = 0;
  std::vector<Piece> pieces_;
};

}  // namespace headrace::reader
