// Drops rows of a batch in place: what a filter and a row transform do with their decision.
#pragma once
#include <cstdint>
#include <span>

#include "reader/batch/flat_map_batch.h"

namespace headrace::reader {

// Keeps the rows r with keep[r] != 0, in order; keep.size() == batch->rows. Ids of the remaining
// rows go to batch->row_ids; when no row is dropped the batch is not touched.
void KeepRows(FlatMapBatch* batch, std::span<const uint8_t> keep);

}  // namespace headrace::reader
