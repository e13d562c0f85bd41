// RowSpan: the range of table rows that some rows of a batch come from, including rows that were
// dropped on the way. Delivering a batch settles all rows of its spans, so that a resumed run reads
// exactly the others.
//
//   rows 0..9 of split 3, which begins at row 100 of the table; sampling kept rows 102, 105, 106
//   spans of the batch                  {epoch 0, split 3, first 100, count 10, rows 3}
//   cut behind its first row            {0, 3, 100, 5, 1} and {0, 3, 105, 5, 2}
//
// A batch's spans are in the order of its rows: the first `rows` rows of the batch are of the first
// span, and so on. Within a span row numbers ascend. A span of which no row is left has rows 0. A
// batch without spans (of a synthetic source, of a test) settles nothing.
#pragma once
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

namespace headrace::reader {

struct RowSpan {
  uint64_t epoch = 0;
  uint64_t split = 0;
  uint64_t first = 0;  // row number within the table, as in FlatMapBatch::RowId
  uint64_t count = 0;  // rows of the table: [first, first + count), all of the split
  uint64_t rows = 0;   // how many of these are in the batch

  bool operator==(const RowSpan&) const = default;
};

// Appends to `to` the spans that the rows [first, first + rows) settle, of a batch with `total`
// rows and spans `from`. Consecutive cuts divide the spans without gap or overlap: rows that were
// dropped between two rows belong to the earlier one, rows dropped before the first row to the
// first. `row_id` is the batch's RowId.
void AppendSpans(std::vector<RowSpan>* to, const std::vector<RowSpan>& from, uint64_t first,
                 uint64_t rows, uint64_t total, const std::function<uint64_t(uint64_t)>& row_id);

// Call when rows of the batch are dropped: keep[r] != 0 if row r stays. The spans keep their
// `count` and get fewer `rows`.
void KeepSpanRows(std::vector<RowSpan>* spans, std::span<const uint8_t> keep);

}  // namespace headrace::reader
