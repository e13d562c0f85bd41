#include "reader/batch/gather_rows.h"

#include <algorithm>

#include "base/check.h"
#include "reader/batch/dedup_rows.h"
#include "reader/batch/first_use.h"

namespace headrace::reader {
namespace {

PresenceBits GatherPresence(const PresenceBits& present, std::span<const uint32_t> order) {
  PresenceBits out;
  out.words.assign((order.size() + 63) / 64, 0);
  for (size_t i = 0; i < order.size(); ++i) {
    const uint64_t bit = present.Get(order[i]);
    out.words[i >> 6] |= bit << (i & 63);
    out.count += bit;
  }
  return out;
}

template <typename Values>
void GatherValues(const Values& values, std::span<const uint32_t> order, Values* out) {
  out->resize(order.size());
  for (size_t i = 0; i < order.size(); ++i) (*out)[i] = values[order[i]];
}

SparseColumn GatherLists(const SparseColumn& column, std::span<const uint32_t> order) {
  HR_CHECK(column.dictionary == nullptr, "ids are looked up before rows are mixed");
  SparseColumn out;
  out.name = column.name;
  out.weighted = column.weighted;
  out.present = GatherPresence(column.present, order);
  out.offsets.resize(order.size() + 1);
  out.offsets[0] = 0;
  for (size_t i = 0; i < order.size(); ++i)
    out.offsets[i + 1] = out.offsets[i] + (column.offsets[order[i] + 1] - column.offsets[order[i]]);
  const bool weights = !column.weights.empty();
  out.values.resize(out.offsets[order.size()]);
  if (weights) out.weights.resize(out.offsets[order.size()]);
  for (size_t i = 0; i < order.size(); ++i) {
    const uint32_t from = column.offsets[order[i]], to = out.offsets[i];
    const uint32_t count = out.offsets[i + 1] - to;
    std::copy_n(column.values.data() + from, count, out.values.data() + to);
    if (weights) std::copy_n(column.weights.data() + from, count, out.weights.data() + to);
  }
  return out;
}

// The group of rows `order`; returns which of its unique rows they use, in the order in which they
// first appear.
std::vector<uint32_t> GatherGroup(const DedupGroup& group, std::span<const uint32_t> order,
                                  DedupGroup* out) {
  FirstUse number;
  number.Reset(group.unique_rows);
  out->name = group.name;
  out->inverse.reserve(order.size());
  for (const uint32_t row : order) out->inverse.push_back(number(group.inverse[row]));
  out->unique_rows = static_cast<uint32_t>(number.used().size());
  return number.used();
}

}  // namespace

SpansByRow SplitSpans(const FlatMapBatch& batch) {
  SpansByRow split;
  uint64_t row = 0;
  for (const RowSpan& span : batch.spans) {
    if (span.rows == 0) split.empty.push_back(span);
    for (uint64_t i = 0; i < span.rows; ++i, ++row) {
      const uint64_t first = i == 0 ? span.first : batch.RowId(row);
      const uint64_t end = i + 1 == span.rows ? span.first + span.count : batch.RowId(row + 1);
      split.rows.push_back({span.epoch, span.split, first, end - first, 1});
    }
  }
  return split;
}

FlatMapBatch GatherRows(const FlatMapBatch& batch, std::span<const uint32_t> order,
                        const SpansByRow& spans) {
  FlatMapBatch out;
  out.rows = order.size();
  out.split_id = batch.split_id;
  out.row_ids.resize(order.size());
  for (size_t i = 0; i < order.size(); ++i) out.row_ids[i] = batch.RowId(order[i]);
  if (!order.empty()) out.first_row = out.row_ids[0];
  if (!spans.rows.empty())
    for (const uint32_t row : order) out.spans.push_back(spans.rows[row]);
  for (const DenseColumn& column : batch.dense) {
    DenseColumn gathered;
    gathered.name = column.name;
    gathered.present = GatherPresence(column.present, order);
    GatherValues(column.values, order, &gathered.values);
    out.dense.push_back(std::move(gathered));
  }
  // For deduplicated features, keep the unique rows that the chosen rows use.
  std::vector<std::vector<uint32_t>> used;
  for (const DedupGroup& group : batch.groups)
    used.push_back(GatherGroup(group, order, &out.groups.emplace_back()));
  for (const SparseColumn& column : batch.sparse) {
    if (column.group < 0) {
      out.sparse.push_back(GatherLists(column, order));
      continue;
    }
    SparseColumn& gathered = out.sparse.emplace_back();
    gathered.name = column.name;
    gathered.weighted = column.weighted;
    gathered.group = column.group;
    AppendRowsOf(&gathered, 0, column, used[static_cast<size_t>(column.group)]);
  }
  for (const ScalarColumn& column : batch.scalars) {
    ScalarColumn gathered;
    gathered.name = column.name;
    gathered.is_float = column.is_float;
    if (column.is_float) {
      GatherValues(column.floats, order, &gathered.floats);
    } else {
      GatherValues(column.integers, order, &gathered.integers);
    }
    out.scalars.push_back(std::move(gathered));
  }
  return out;
}

}  // namespace headrace::reader
