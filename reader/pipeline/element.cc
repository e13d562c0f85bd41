#include "reader/pipeline/element.h"

#include <algorithm>

#include "base/check.h"
#include "reader/batch/keep_rows.h"

namespace headrace::reader {

namespace {

// The part of MarkOrigin that is about what a resumed run still wants.
void MarkWanted(const Element& element, FlatMapBatch* batch) {
  const RowSpan& origin = element.origin;
  const uint64_t first = batch->first_row, end = first + batch->rows;
  if (!element.wanted) {
    batch->spans.push_back({origin.epoch, origin.split, first, batch->rows, batch->rows});
    return;
  }
  std::vector<uint8_t> keep(batch->rows, 0);
  std::vector<RowSpan> spans;
  for (const RowSpan& wanted : *element.wanted) {
    const uint64_t low = std::max(first, wanted.first);
    const uint64_t high = std::min(end, wanted.first + wanted.count);
    if (low >= high) continue;
    std::fill(keep.begin() + static_cast<ptrdiff_t>(low - first),
              keep.begin() + static_cast<ptrdiff_t>(high - first), 1);
    spans.push_back({origin.epoch, origin.split, low, high - low, high - low});
  }
  KeepRows(batch, keep);
  batch->spans = std::move(spans);
}

}  // namespace

void MarkOrigin(const Element& element, FlatMapBatch* batch) {
  const RowSpan& origin = element.origin;
  HR_CHECK(batch->row_ids.empty() && batch->first_row >= origin.first &&
               batch->first_row + batch->rows <= origin.first + origin.count,
           "the rows of a batch are of its element's split");
  batch->split_id = origin.split;
  batch->spans.clear();
  if (batch->rows == 0) return;
  MarkWanted(element, batch);
  if (!element.kept) return;
  std::vector<uint8_t> keep(batch->rows);
  for (uint64_t row = 0; row < batch->rows; ++row)
    keep[row] = (*element.kept)[batch->RowId(row) - origin.first];
  KeepRows(batch, keep);
}

std::vector<uint8_t> WantedRows(const Element& element, uint64_t first_row, uint64_t rows) {
  std::vector<uint8_t> keep;
  if (!element.wanted && !element.kept) return keep;
  keep.resize(rows, !element.wanted);
  if (element.wanted) {
    for (const RowSpan& wanted : *element.wanted) {
      const uint64_t low = std::max(first_row, wanted.first);
      const uint64_t high = std::min(first_row + rows, wanted.first + wanted.count);
      if (low < high)
        std::fill_n(keep.begin() + static_cast<ptrdiff_t>(low - first_row), high - low, 1);
    }
  }
  for (uint64_t row = 0; element.kept && row < rows; ++row)
    keep[row] &= (*element.kept)[first_row + row - element.origin.first];
  return keep;
}

const std::vector<RowSpan>& SpansOf(const Element& element) {
  static const std::vector<RowSpan> none;
  if (const auto* rows = element.payload.Get<FlatMapBatch>()) return rows->spans;
  if (const auto* tensors = element.payload.Get<TensorBatch>()) return tensors->spans;
  return none;
}

}  // namespace headrace::reader
