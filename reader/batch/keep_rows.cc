#include "reader/batch/keep_rows.h"

#include <algorithm>
#include <vector>

#include "base/check.h"
#include "reader/batch/dedup_rows.h"

namespace headrace::reader {
namespace {

// A stretch of rows that stay together: copied at once.
struct Run {
  uint64_t first, rows;
};

std::vector<Run> RunsOf(std::span<const uint8_t> keep) {
  std::vector<Run> runs;
  for (uint64_t row = 0; row < keep.size(); ++row) {
    if (!keep[row]) continue;
    if (!runs.empty() && runs.back().first + runs.back().rows == row) {
      ++runs.back().rows;
    } else {
      runs.push_back({row, 1});
    }
  }
  return runs;
}

template <typename Values>
void KeepValues(Values* values, const std::vector<Run>& runs) {
  auto out = values->begin();
  for (const Run& run : runs)
    out = std::copy_n(values->begin() + static_cast<ptrdiff_t>(run.first), run.rows, out);
  values->erase(out, values->end());
}

void KeepPresence(PresenceBits* present, const std::vector<Run>& runs, uint64_t rows) {
  PresenceBits kept;
  kept.words.assign((rows + 63) / 64, 0);
  uint64_t target = 0;
  for (const Run& run : runs) {
    for (uint64_t row = run.first; row < run.first + run.rows; ++row, ++target) {
      const uint64_t bit = present->Get(row);
      kept.words[target >> 6] |= bit << (target & 63);
      kept.count += bit;
    }
  }
  *present = std::move(kept);
}

void KeepLists(SparseColumn* column, const std::vector<Run>& runs, uint64_t rows) {
  uint32_t used = 0;
  uint64_t target = 0;
  for (const Run& run : runs) {
    const uint32_t begin = column->offsets[run.first];
    const uint32_t end = column->offsets[run.first + run.rows];
    std::copy(column->values.begin() + begin, column->values.begin() + end,
              column->values.begin() + used);
    if (!column->weights.empty())
      std::copy(column->weights.begin() + begin, column->weights.begin() + end,
                column->weights.begin() + used);
    for (uint64_t row = run.first; row < run.first + run.rows; ++row)
      column->offsets[++target] = used + (column->offsets[row + 1] - begin);
    used += end - begin;
  }
  column->offsets.resize(rows + 1);
  column->values.resize(used);
  if (!column->weights.empty()) column->weights.resize(used);
}

}  // namespace

void KeepRows(FlatMapBatch* batch, std::span<const uint8_t> keep) {
  HR_CHECK(keep.size() == batch->rows, "one decision per row");
  const std::vector<Run> runs = RunsOf(keep);
  uint64_t rows = 0;
  for (const Run& run : runs) rows += run.rows;
  if (rows == batch->rows) return;
  if (batch->row_ids.empty()) {
    batch->row_ids.resize(batch->rows);
    for (uint64_t row = 0; row < batch->rows; ++row) batch->row_ids[row] = batch->first_row + row;
  }
  KeepValues(&batch->row_ids, runs);
  KeepSpanRows(&batch->spans, keep);
  if (rows > 0) batch->first_row = batch->row_ids[0];
  for (DenseColumn& column : batch->dense) {
    KeepPresence(&column.present, runs, rows);
    KeepValues(&column.values, runs);
  }
  KeepGroupRows(batch, keep);
  for (SparseColumn& column : batch->sparse) {
    if (column.group >= 0) continue;
    KeepPresence(&column.present, runs, rows);
    KeepLists(&column, runs, rows);
  }
  for (ScalarColumn& column : batch->scalars) {
    if (column.is_float) {
      KeepValues(&column.floats, runs);
    } else {
      KeepValues(&column.integers, runs);
    }
  }
  batch->rows = rows;
}

}  // namespace headrace::reader
