// Finding equal rows of a group of sparse features, keeping each once, and spreading them again. A
// row equals another when for every feature of the group both are absent, or both have the same ids
// and weights, bit for bit. Ids in a dictionary stay there; they are compared by their values.
// Hashes only choose which rows are compared, so a collision changes no result.
#pragma once
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "reader/batch/flat_map_batch.h"

namespace headrace::reader {

enum class DedupScope : uint8_t {
  kNeighbours,  // a row is compared with the one before it: for tables clustered by session
  kBatch        // with all rows of the batch, through a hash table
};

using RowHash = uint64_t (*)(const void* bytes, size_t size, uint64_t seed);
uint64_t HashBytes(const void* bytes, size_t size, uint64_t seed);  // XXH3

// Rows classified by their content. Unique rows are numbered in the order in which they first
// appear.
struct RowClasses {
  std::vector<uint32_t> inverse;    // by row: its unique row
  std::vector<uint32_t> first_row;  // by unique row: the first row with its content
};
RowClasses ClassifyRows(std::span<const SparseColumn* const> columns, uint64_t rows,
                        DedupScope scope, RowHash hash = HashBytes);

// The same for rows of any form: `hash(row)`, and `same(a, b)` for two rows of equal hash.
RowClasses ClassifyByHash(uint64_t rows, const std::function<uint64_t(uint32_t)>& hash,
                          const std::function<bool(uint32_t, uint32_t)>& same);

// Appends rows `rows` of `from` to the `to_rows` rows of `to`, which may be empty. `rows` may
// contain a row several times. Throws Error kResources when the column outgrows 2^32 ids.
void AppendRowsOf(SparseColumn* to, uint64_t to_rows, const SparseColumn& from,
                  std::span<const uint32_t> rows);

// Bytes of a column's lists: ids, weights, offsets.
uint64_t ListBytes(const SparseColumn& column);

struct DedupBytes {
  uint64_t expanded = 0, unique = 0;
};
// Makes one group of the columns with indices `columns` in batch->sparse, which must be in no group
// yet.
DedupBytes Deduplicate(FlatMapBatch* batch, const std::string& name,
                       std::span<const size_t> columns, DedupScope scope, RowHash hash = HashBytes);

// Gives the column one list for each row of the batch; does nothing if it has that already.
void Expand(const FlatMapBatch& batch, SparseColumn* column);
// The same for all columns; the batch then has no groups.
void ExpandAll(FlatMapBatch* batch);
// Turns one value for each unique row into one for each row of the batch.
DenseColumn Expand(const DedupGroup& group, DenseColumn&& unique);

// AppendRows for groups and their columns: takes the unique rows of `from` that its rows [first,
// first + rows) use.
void AppendGroups(FlatMapBatch* to, const FlatMapBatch& from, uint64_t first, uint64_t rows);
// KeepRows for groups. Unique rows that no row uses any more stay.
void KeepGroupRows(FlatMapBatch* batch, std::span<const uint8_t> keep);

// Number of lists in a column: the batch's rows, or its group's unique rows.
inline uint64_t RowsOf(const FlatMapBatch& batch, const SparseColumn& column) {
  return column.group < 0 ? batch.rows
                          : batch.groups[static_cast<size_t>(column.group)].unique_rows;
}

}  // namespace headrace::reader
