#include "reader/batch/dedup_rows.h"

#include <fmt/format.h>
#include <xxhash.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <numeric>
#include <utility>

#include "base/check.h"
#include "base/error.h"
#include "reader/batch/first_use.h"
#include "reader/batch/id_dictionary.h"

namespace headrace::reader {
namespace {

bool SameBytes(const void* a, const void* b, size_t size) {
  return size == 0 || std::memcmp(a, b, size) == 0;
}

// Entries of a dictionary may repeat: indices that differ say little.
bool SameIds(const SparseColumn& column, const int64_t* a, const int64_t* b, size_t count) {
  if (SameBytes(a, b, count * sizeof(int64_t))) return true;
  if (!column.dictionary) return false;
  const int64_t* const entries = column.dictionary->entries().data();
  return std::equal(a, a + count, b,
                    [&](int64_t x, int64_t y) { return entries[x] == entries[y]; });
}

bool SameList(const SparseColumn& column, uint64_t a, uint64_t b) {
  const uint32_t* offsets = column.offsets.data();
  const uint32_t length = offsets[a + 1] - offsets[a];
  if (length != offsets[b + 1] - offsets[b] || column.present.Get(a) != column.present.Get(b))
    return false;
  const int64_t* values = column.values.data();
  if (!SameIds(column, values + offsets[a], values + offsets[b], length)) return false;
  const float* weights = column.weights.data();
  return column.weights.empty() ||
         SameBytes(weights + offsets[a], weights + offsets[b], length * sizeof(float));
}

bool SameRow(std::span<const SparseColumn* const> columns, uint64_t a, uint64_t b) {
  return std::all_of(columns.begin(), columns.end(),
                     [&](const SparseColumn* column) { return SameList(*column, a, b); });
}

// Column by column, so that each is read once from front to back; a row known to differ is not
// compared again.
RowClasses ClassifyNeighbours(std::span<const SparseColumn* const> columns, uint64_t rows) {
  std::vector<uint8_t> changed(rows, 0);
  for (const SparseColumn* column : columns)
    for (uint64_t row = 1; row < rows; ++row)
      if (!changed[row] && !SameList(*column, row, row - 1)) changed[row] = 1;
  changed[0] = 1;
  RowClasses classes;
  classes.inverse.resize(rows);
  for (uint64_t row = 0; row < rows; ++row) {
    if (changed[row]) classes.first_row.push_back(static_cast<uint32_t>(row));
    classes.inverse[row] = static_cast<uint32_t>(classes.first_row.size() - 1);
  }
  return classes;
}

// `ids` is room for those of dictionaries.
uint64_t HashRow(std::span<const SparseColumn* const> columns, uint64_t row, RowHash hash,
                 std::vector<int64_t>* ids) {
  uint64_t sum = 0;
  for (const SparseColumn* column : columns) {
    const uint32_t begin = column->offsets[row], length = column->offsets[row + 1] - begin;
    // Absent and empty differ, and so do lists cut elsewhere.
    sum = sum * 0x9e3779b97f4a7c15u + length * 2 + column->present.Get(row);
    const int64_t* values = column->values.data() + begin;
    if (column->dictionary) {
      ids->assign(values, values + length);
      column->dictionary->LookUp(*ids);
      values = ids->data();
    }
    sum = hash(values, length * sizeof(int64_t), sum);
    if (!column->weights.empty())
      sum = hash(column->weights.data() + begin, length * sizeof(float), sum);
  }
  return sum;
}

// The column's rows `rows` in its place, as column of group `group`.
void Replace(SparseColumn* column, std::span<const uint32_t> rows, int32_t group) {
  SparseColumn taken;
  taken.name = std::move(column->name);
  taken.weighted = column->weighted;
  AppendRowsOf(&taken, 0, *column, rows);
  taken.group = group;
  taken.dictionary = std::move(column->dictionary);
  taken.decoded_values = column->decoded_values;
  *column = std::move(taken);
}

}  // namespace

uint64_t HashBytes(const void* bytes, size_t size, uint64_t seed) {
  return XXH3_64bits_withSeed(bytes, size, seed);
}

RowClasses ClassifyRows(std::span<const SparseColumn* const> columns, uint64_t rows,
                        DedupScope scope, RowHash hash) {
  if (rows == 0) return {};
  HR_CHECK(rows < UINT32_MAX, "too many rows in one batch");
  std::vector<int64_t> ids;
  return scope == DedupScope::kNeighbours
             ? ClassifyNeighbours(columns, rows)
             : ClassifyByHash(
                   rows, [&](uint32_t row) { return HashRow(columns, row, hash, &ids); },
                   [&](uint32_t a, uint32_t b) { return SameRow(columns, a, b); });
}

RowClasses ClassifyByHash(uint64_t rows, const std::function<uint64_t(uint32_t)>& hash,
                          const std::function<bool(uint32_t, uint32_t)>& same) {
  struct Slot {
    uint64_t hash;
    uint32_t unique;  // its number + 1; 0: empty
  };
  const size_t mask = std::bit_ceil(2 * rows) - 1;
  std::vector<Slot> table(mask + 1);
  RowClasses classes;
  classes.inverse.resize(rows);
  for (uint32_t row = 0; row < rows; ++row) {
    const uint64_t sum = hash(row);
    for (size_t place = (sum ^ sum >> 32) & mask;; place = (place + 1) & mask) {
      Slot& slot = table[place];
      if (slot.unique == 0) {
        classes.first_row.push_back(row);
        slot = {sum, static_cast<uint32_t>(classes.first_row.size())};
      } else if (slot.hash != sum || !same(classes.first_row[slot.unique - 1], row)) {
        continue;
      }
      classes.inverse[row] = slot.unique - 1;
      break;
    }
  }
  return classes;
}

uint64_t ListBytes(const SparseColumn& column) {
  return column.values.size() * sizeof(int64_t) + column.weights.size() * sizeof(float) +
         column.offsets.size() * sizeof(uint32_t);
}

void AppendRowsOf(SparseColumn* to, uint64_t to_rows, const SparseColumn& from,
                  std::span<const uint32_t> rows) {
  to->weighted |= from.weighted;
  if (to->offsets.empty()) to->offsets.push_back(0);
  const uint32_t* offsets = from.offsets.data();
  uint64_t total = to->values.size();
  const uint64_t base = total;
  to->offsets.resize(to_rows + rows.size() + 1);
  to->present.words.resize((to_rows + rows.size() + 63) / 64, 0);
  for (size_t i = 0; i < rows.size(); ++i) {
    total += offsets[rows[i] + 1] - offsets[rows[i]];
    if (total > UINT32_MAX) {
      throw Error(ExitCode::kResources,
                  fmt::format("feature {} has more than 2^32 values in one batch", from.name), {},
                  "use a smaller batch_rows");
    }
    to->offsets[to_rows + i + 1] = static_cast<uint32_t>(total);
    const uint64_t bit = from.present.Get(rows[i]), place = to_rows + i;
    to->present.words[place >> 6] |= bit << (place & 63);
    to->present.count += bit;
  }
  to->values.resize(total);
  const bool weighted = to->weighted || !from.weights.empty() || !to->weights.empty();
  if (weighted) {
    to->weights.resize(base, 1.0f);
    to->weights.resize(total, 1.0f);
  }
  uint64_t at = base;
  for (size_t i = 0; i < rows.size();) {
    const uint32_t first = rows[i];  // rows that follow each other are copied at once
    size_t end = i + 1;
    while (end < rows.size() && rows[end] == rows[end - 1] + 1) ++end;
    const uint64_t begin = offsets[first], count = offsets[rows[end - 1] + 1] - begin;
    if (count > 0) {
      std::memcpy(to->values.data() + at, from.values.data() + begin, count * sizeof(int64_t));
      if (!from.weights.empty())
        std::memcpy(to->weights.data() + at, from.weights.data() + begin, count * sizeof(float));
    }
    at += count;
    i = end;
  }
}

DedupBytes Deduplicate(FlatMapBatch* batch, const std::string& name,
                       std::span<const size_t> columns, DedupScope scope, RowHash hash) {
  std::vector<const SparseColumn*> wanted;
  for (const size_t i : columns) {
    HR_CHECK(batch->sparse[i].group < 0, "a column is of one group");
    wanted.push_back(&batch->sparse[i]);
  }
  RowClasses classes = ClassifyRows(wanted, batch->rows, scope, hash);
  const auto group = static_cast<int32_t>(batch->groups.size());
  DedupBytes bytes;
  for (const size_t i : columns) {
    bytes.expanded += ListBytes(batch->sparse[i]);
    Replace(&batch->sparse[i], classes.first_row, group);
    bytes.unique += ListBytes(batch->sparse[i]);
  }
  bytes.unique += classes.inverse.size() * sizeof(uint32_t);
  batch->groups.push_back(
      {name, static_cast<uint32_t>(classes.first_row.size()), std::move(classes.inverse)});
  return bytes;
}

void Expand(const FlatMapBatch& batch, SparseColumn* column) {
  if (column->group < 0) return;
  Replace(column, batch.groups[static_cast<size_t>(column->group)].inverse, -1);
}

void ExpandAll(FlatMapBatch* batch) {
  for (SparseColumn& column : batch->sparse) Expand(*batch, &column);
  batch->groups.clear();
}

DenseColumn Expand(const DedupGroup& group, DenseColumn&& unique) {
  DenseColumn column;
  column.name = std::move(unique.name);
  const size_t rows = group.inverse.size();
  column.values.resize(rows);
  column.present.words.assign((rows + 63) / 64, 0);
  for (size_t row = 0; row < rows; ++row) {
    const uint32_t from = group.inverse[row];
    column.values[row] = unique.values[from];
    const uint64_t bit = unique.present.Get(from);
    column.present.words[row >> 6] |= bit << (row & 63);
    column.present.count += bit;
  }
  return column;
}

void AppendGroups(FlatMapBatch* to, const FlatMapBatch& from, uint64_t first, uint64_t rows) {
  if (to->groups.empty()) {
    for (const DedupGroup& group : from.groups) to->groups.push_back({group.name, 0, {}});
  }
  HR_CHECK(to->groups.size() == from.groups.size(), "batches of different groups");
  FirstUse number;
  for (size_t g = 0; g < from.groups.size(); ++g) {
    const DedupGroup& source = from.groups[g];
    DedupGroup& target = to->groups[g];
    number.Reset(source.unique_rows);
    target.inverse.reserve(target.inverse.size() + rows);
    for (uint64_t row = first; row < first + rows; ++row)
      target.inverse.push_back(target.unique_rows + number(source.inverse[row]));
    for (size_t i = 0; i < from.sparse.size(); ++i) {
      HR_CHECK(to->sparse[i].group == from.sparse[i].group, "batches of different groups");
      HR_CHECK(from.sparse[i].dictionary == nullptr, "ids are looked up before rows are joined");
      if (from.sparse[i].group == static_cast<int32_t>(g))
        AppendRowsOf(&to->sparse[i], target.unique_rows, from.sparse[i], number.used());
    }
    target.unique_rows += static_cast<uint32_t>(number.used().size());
  }
}

void KeepGroupRows(FlatMapBatch* batch, std::span<const uint8_t> keep) {
  for (DedupGroup& group : batch->groups) {
    size_t kept = 0;
    for (size_t row = 0; row < keep.size(); ++row)
      if (keep[row]) group.inverse[kept++] = group.inverse[row];
    group.inverse.resize(kept);
  }
}

}  // namespace headrace::reader
