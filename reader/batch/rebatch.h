// Rebatcher: tensor batches of any size in, batches of exactly `rows` rows out, in the same order,
// or, where order says nothing, with those first that have the right size.
// Workers make small batches, which need little memory and spread over threads; a training step
// takes large ones (RecD, arXiv:2211.05239; Zhao et al., arXiv:2108.09373: rebatching in the
// client).
//
// Each value is copied once, when its batch is full; a batch that has the right size when nothing
// is pending, or in any order, passes untouched; what is left of a lent one is copied at once;
// deduplicated features of the others are expanded. Not thread-safe.
#pragma once
#include <cstdint>
#include <functional>
#include <vector>

#include "reader/batch/tensor_batch.h"

namespace headrace::reader {

class Rebatcher {
 public:
  using Emit = std::function<void(TensorBatch&&)>;

  explicit Rebatcher(uint64_t rows, bool keeps_order = true)
      : rows_(rows), keeps_order_(keeps_order) {}
  // All batches have the same features; a batch of no rows brings only its spans.
  void Add(TensorBatch&& batch, const Emit& emit);
  // Emits the rows that are left as a smaller batch; as a batch without rows if only spans are
  // left.
  void Finish(const Emit& emit);
  // Bytes of all batches of which rows are waiting here.
  uint64_t MemoryBytes() const;

 private:
  struct Piece {  // rows [first, end) of batch
    TensorBatch batch;
    uint64_t first = 0;
  };
  // Joins the first `rows` rows of the pieces, with the spans of empty pieces between them and, if
  // `tail`, after them.
  TensorBatch Join(uint64_t rows, bool tail);

  uint64_t rows_;
  bool keeps_order_;
  uint64_t pending_rows_ = 0;
  std::vector<Piece> pieces_;
};

}  // namespace headrace::reader
