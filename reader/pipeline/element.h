// Element: what moves between operators. Its payload is whatever the last operator made; synthetic
// elements have none.
#pragma once
#include <cstdint>
#include <memory>
#include <variant>
#include <vector>

#include "reader/batch/flat_map_batch.h"
#include "reader/batch/row_span.h"
#include "reader/batch/tensor_batch.h"
#include "reader/dwrf/feature_stream.h"
#include "reader/pipeline/memory_ledger.h"
#include "reader/pipeline/split.h"

namespace headrace::reader {

struct SyntheticElement {};
struct CachedBatches;  // reader/pipeline/cache/batch_cache.h
using CachedPayload = std::shared_ptr<const CachedBatches>;

struct Element {
  uint64_t sequence = 0;     // dense numbers in file order at the source; renumbered by `batch`
  uint64_t first_slice = 0;  // what `sequence` is for the first batch that `extract` makes of it
  uint64_t rows = 0;
  uint64_t bytes = 0;  // payload size, for accounts and queue memory
  // Bytes that the operator which made it got from outside the pipeline: storage. The account adds
  // them to the operator's input.
  uint64_t received_bytes = 0;
  uint64_t seed = 0;  // of random costs: depends on the element alone, never on the thread
  // Up to the first batch: the split it was read for, and where rows of it were delivered before
  // the run resumed, the rows still wanted (null: all of them).
  RowSpan origin;
  std::shared_ptr<const std::vector<RowSpan>> wanted;
  // Under a memory budget, what the split that it was made of is charged with. An operator that
  // makes new elements hands it on to them. Null: no budget.
  std::shared_ptr<MemoryCharge> memory;
  std::variant<SyntheticElement, Split, FetchedStripe, dwrf::UnpackedStripe, dwrf::DecodedStripe,
               FlatMapBatch, TensorBatch, CachedPayload>
      payload;
};

// To be called by the operator that turns a stripe, or some consecutive rows of it, into a batch:
// gives the batch its spans and split_id, and drops the rows that are not wanted. `batch` has all
// its rows, by first_row.
void MarkOrigin(const Element& element, FlatMapBatch* batch);

// keep[r] = 1 for the rows of the stripe, from `first_row` on, that are wanted; empty: all are.
std::vector<uint8_t> WantedRows(const Element& element, uint64_t first_row, uint64_t rows);

// The spans of a batch of either form; none of other payloads.
const std::vector<RowSpan>& SpansOf(const Element& element);

}  // namespace headrace::reader
