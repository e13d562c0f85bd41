#include "reader/service/unit_joiner.h"

#include <algorithm>

#include "base/check.h"
#include "reader/batch/rebatch.h"

namespace headrace::reader::service {
namespace {

uint64_t RowsOfTable(const TensorBatch& batch) {
  uint64_t rows = 0;
  for (const RowSpan& span : batch.spans) rows += span.count;
  return rows;
}

uint64_t FirstOf(const Element& element) {
  return element.payload.As<TensorBatch>().spans.front().first;
}

}  // namespace

uint64_t WantedRowsOf(const std::vector<RowRange>& wanted, const RowRange& unit) {
  uint64_t rows = 0;
  for (const RowRange& range : wanted) {
    const uint64_t low = std::max(unit.first, range.first);
    const uint64_t high = std::min(unit.first + unit.count, range.first + range.count);
    if (low < high) rows += high - low;
  }
  return rows;
}

std::optional<Element> UnitJoiner::Add(uint64_t lease, uint64_t unit, uint64_t wanted_rows,
                                       Element&& piece) {
  const uint64_t rows = RowsOfTable(piece.payload.As<TensorBatch>());
  if (rows == wanted_rows) return std::move(piece);
  const auto place = pieces_.try_emplace({lease, unit}).first;
  Pieces& pieces = place->second;
  pieces.rows += rows;
  pieces.elements.push_back(std::move(piece));
  HR_CHECK(pieces.rows <= wanted_rows, "a unit has rows that nobody wanted");
  if (pieces.rows < wanted_rows) return std::nullopt;
  std::sort(pieces.elements.begin(), pieces.elements.end(),
            [](const Element& a, const Element& b) { return FirstOf(a) < FirstOf(b); });
  Element joined;
  joined.memory = pieces.elements.front().memory;
  Rebatcher rebatcher(UINT64_MAX);
  const auto take = [&](TensorBatch&& batch) {
    joined.rows = batch.rows;
    joined.bytes = batch.MemoryBytes();
    joined.payload = std::move(batch);
  };
  for (Element& element : pieces.elements)
    rebatcher.Add(std::move(element.payload.As<TensorBatch>()), take);
  rebatcher.Finish(take);
  pieces_.erase(place);
  return joined;
}

void UnitJoiner::Drop(uint64_t lease) {
  pieces_.erase(pieces_.lower_bound({lease, 0}), pieces_.lower_bound({lease + 1, 0}));
}

}  // namespace headrace::reader::service
