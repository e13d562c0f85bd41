// From a FlatMap batch to what a consumer takes: a dense row-major matrix and keyed jagged tensors;
// and cutting and joining batches by rows. All functions are thread-safe on distinct outputs.
#pragma once
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "base/cpu.h"
#include "reader/batch/flat_map_batch.h"
#include "reader/batch/keyed_jagged_tensor.h"
#include "reader/batch/tensor_batch.h"

namespace headrace::reader {

// out[r * columns.size() + c] = columns[c][r], blocked for the cache; out: float[rows,
// columns.size()].
void TransposeColumns(std::span<const float* const> columns, uint64_t rows, float* out,
                      InstructionSet set = BestInstructionSet());

// One tensor of all `columns` of a batch of `rows` rows, in their order; weights when `weighted` (a
// column without has 1).
KeyedJaggedTensor AssembleKjt(std::span<const SparseColumn* const> columns, uint64_t rows,
                              bool weighted);

// The whole batch as tensors: all dense columns in order; sparse columns without weights into
// `sparse`, those with into `weighted_sparse`; labels from scalar column `label` (empty: none;
// integers are converted). row_ids are the batch's. Throws Error kUsage when
// the label column does not exist.
TensorBatch Tensorize(const FlatMapBatch& batch, std::string_view label);

// The same, taking the batch: where its columns lie in slabs (flat_map_batch.h), the slab becomes
// the tensor's values, and a group's slab those of its unique rows. Columns that transforms left in
// place are not touched; others, and those after them, are moved within the slab. Only where that
// is impossible (columns in another order, too little spare room) are all copied to new memory.
struct TensorizeFigures {
  uint64_t copied_bytes = 0;  // of ids and weights, moved or copied, here and before
  double missing_spare = 0;   // room that the slab lacked at its end, as a share of its size
  std::vector<double> group_missing;  // the same of each group's slab; empty: they had none
};
TensorBatch Tensorize(FlatMapBatch&& batch, std::string_view label, TensorizeFigures* figures);

// Appends rows [first, first + rows) of `from` to `to`. An empty `to` (0 rows, no columns) takes
// from's columns; otherwise both have the same columns in the same order, else HR_CHECK fails.
// first_row and split_id stay those of the first part. A column's total values stay below 2^32,
// else Error kResources.
void AppendRows(FlatMapBatch* to, const FlatMapBatch& from, uint64_t first, uint64_t rows);

// Throws Error kBadData naming the column unless the batch keeps the promises of flat_map_batch.h
// (sizes, offsets, presence counts). For tests and for batches that came from outside.
void Validate(const FlatMapBatch& batch);

}  // namespace headrace::reader
