// The operators that change which rows are together: shuffle and rebatch. (`batch` is with the
// other operators of a table.)
#pragma once
#include <cstdint>
#include <memory>
#include <utility>

#include "base/mix_bits.h"
#include "reader/pipeline/operator.h"

namespace headrace::reader {

// Puts the rows of windows of shuffle_rows rows into a random order that depends on the seed, the
// epoch and the rows alone. With file order a window is rows [k W, (k + 1) W) of the table,
// whatever was dropped of them: the order is the same in every run, also in one that goes on from a
// checkpoint. Otherwise it is W rows as they come to the thread.
std::unique_ptr<Operator> MakeShuffle(const OperatorContext& context);

// Joins and cuts the tensor batches of the workers to batch_rows.
std::unique_ptr<Operator> MakeRebatch(const OperatorContext& context);

// Rows of a batch as `batch` makes it: worker_rows where a rebatch follows.
uint64_t WorkerRows(const PipelineSpec& spec);

// The element of a batch (FlatMapBatch or TensorBatch), the `sequence`th of its operator. Its size
// in bytes is that of the batch, its random draws follow from the first row.
template <class Batch>
Element ElementOf(Batch&& batch, uint64_t sequence) {
  Element element;
  element.sequence = sequence;
  element.rows = batch.rows;
  element.bytes = batch.MemoryBytes();
  element.seed = batch.rows == 0 ? 0 : MixBits(batch.RowId(0));
  element.payload = std::move(batch);
  return element;
}

// Whether splits go past extract as one kept element each, which then become batches: there they
// have a place each, which slices would not have.
bool CachesWholeSplits(const PipelineSpec& spec);

// Rows of the slices that a stripe becomes (reader/dwrf/slices.h); 0: it stays whole.
uint64_t SliceRows(const PipelineSpec& spec);

}  // namespace headrace::reader
