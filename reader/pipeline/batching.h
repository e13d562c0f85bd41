// What the operators that change which rows are together (batch, shuffle, rebatch) have in common,
// and how many rows there are in a batch.
#pragma once
#include <cstdint>
#include <memory>
#include <utility>

#include "base/mix_bits.h"
#include "reader/pipeline/operator.h"

namespace headrace::reader {

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
