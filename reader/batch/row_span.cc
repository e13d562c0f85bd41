#include "reader/batch/row_span.h"

#include <algorithm>

#include "base/check.h"

namespace headrace::reader {
namespace {

void Append(std::vector<RowSpan>* to, const RowSpan& span) {
  if (!to->empty()) {
    RowSpan& last = to->back();
    if (last.epoch == span.epoch && last.split == span.split &&
        last.first + last.count == span.first) {
      last.count += span.count;
      last.rows += span.rows;
      return;
    }
  }
  to->push_back(span);
}

}  // namespace

void AppendSpans(std::vector<RowSpan>* to, const std::vector<RowSpan>& from, uint64_t first,
                 uint64_t rows, uint64_t total, const std::function<uint64_t(uint64_t)>& row_id) {
  if (from.empty() || (rows == 0 && total > 0)) return;
  const uint64_t end = first + rows;
  uint64_t begin_row = 0;  // of the span, in the batch
  for (const RowSpan& span : from) {
    const uint64_t end_row = begin_row + span.rows;
    if (span.rows == 0) {
      // It stands right before row begin_row, on the near side of a cut there.
      if ((first < begin_row || first == 0) && begin_row <= end) Append(to, span);
      continue;
    }
    const uint64_t low = std::max(first, begin_row), high = std::min(end, end_row);
    if (low < high) {
      RowSpan part = span;
      const uint64_t span_end = span.first + span.count;
      part.first = low == begin_row ? span.first : row_id(low);
      part.count = (high == end_row ? span_end : row_id(high)) - part.first;
      part.rows = high - low;
      Append(to, part);
    }
    begin_row = end_row;
  }
  HR_CHECK(begin_row == total, "the spans of a batch have as many rows as the batch");
}

void KeepSpanRows(std::vector<RowSpan>* spans, std::span<const uint8_t> keep) {
  uint64_t row = 0;
  for (RowSpan& span : *spans) {
    uint64_t kept = 0;
    for (const uint64_t end = row + span.rows; row < end; ++row) kept += keep[row] != 0;
    span.rows = kept;
  }
}

}  // namespace headrace::reader
