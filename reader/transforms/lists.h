// Building blocks of list transforms: presence of several inputs together, and an output column
// filled row by row.
#pragma once
#include <cstdint>
#include <span>

#include "reader/batch/flat_map_batch.h"

namespace headrace::reader {

// Rows that have every one of `columns`, and rows that have at least one.
PresenceBits PresentInAll(std::span<const SparseColumn* const> columns, uint64_t rows);
PresenceBits PresentInAny(std::span<const SparseColumn* const> columns, uint64_t rows);

// Every row present.
PresenceBits AllPresent(uint64_t rows);

// Makes room in `out` for `rows` lists of together `values` ids: offsets (offsets[0] = 0) and
// values have their sizes, contents unspecified. Throws Error kResources for 2^32 ids or more.
void ReserveLists(SparseColumn* out, uint64_t rows, uint64_t values);

// offsets[i] = i for i in [0, rows]: one id per row.
void OneIdPerRow(uint64_t rows, uint32_t* offsets);

// One row's ids as a view.
inline std::span<const int64_t> Ids(const SparseColumn& column, uint64_t row) {
  return {column.values.data() + column.offsets[row],
          column.values.data() + column.offsets[row + 1]};
}

// Appends a finished row to a column that is filled row by row.
void EndRow(SparseColumn* out);

}  // namespace headrace::reader
