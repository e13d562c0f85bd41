// Shared by the operators that change which rows are together (batch, shuffle, rebatch); and how
// many rows a batch has.
#pragma once
#include <cstdint>
#include <memory>
#include <utility>

#include "base/mix_bits.h"
#include "reader/pipeline/operator.h"

namespace headrace::reader {

// Rows of a batch that the operator `batch` makes: worker_rows if a rebatch follows.
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

// Whether a cached split passes `extract` as one element, which later becomes batches. Then each
// split needs one place in the order; slices of it would need several.
bool CachesWholeSplits(const PipelineSpec& spec);

// Rows of the slices that a stripe becomes (reader/dwrf/slices.h); 0: it stays whole.
uint64_t SliceRows(const PipelineSpec& spec);

}  // namespace headrace::reader
