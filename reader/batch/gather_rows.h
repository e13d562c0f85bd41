// GatherRows: rows of a batch in another order, for shuffling.
#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "reader/batch/flat_map_batch.h"

namespace headrace::reader {

// What each row of a batch settles (`rows`), and the spans of which no row is left (`empty`). Both
// are empty for a batch without spans.
struct SpansByRow {
  std::vector<RowSpan> rows;   // one per row, rows = 1
  std::vector<RowSpan> empty;  // rows = 0
};
SpansByRow SplitSpans(const FlatMapBatch& batch);

// Row i of the result is row order[i] of `batch`; rows may be left out. `spans` are those of
// `batch`; its empty ones stay out. Thread-safe.
FlatMapBatch GatherRows(const FlatMapBatch& batch, std::span<const uint32_t> order,
                        const SpansByRow& spans);

}  // namespace headrace::reader
