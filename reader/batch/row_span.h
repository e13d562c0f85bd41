// RowSpan: where rows of a batch come from, and with them the rows that were dropped on the way.
// Delivering a batch settles all rows of its spans, so that a resumed run reads exactly the others.
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
  uint64_t rows = 0;   // of them in the batch

  bool operator==(const RowSpan&) const = default;
};

// What the rows [first, first + rows) of a batch of `total` rows and `from` spans settle, behind
// `to`. Consecutive cuts share the spans without gap or overlap: rows dropped between two rows go
// with the earlier one, those before the first row with it. `row_id` is the batch's RowId.
void AppendSpans(std::vector<RowSpan>* to, const std::vector<RowSpan>& from, uint64_t first,
                 uint64_t rows, uint64_t total, const std::function<uint64_t(uint64_t)>& row_id);

// Rows of the batch were dropped: keep[r] says which stay. The spans stay as long, with fewer rows.
void KeepSpanRows(std::vector<RowSpan>* spans, std::span<const uint8_t> keep);

}  // namespace headrace::reader
