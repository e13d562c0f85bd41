#include "reader/batch/row_map_batch.h"

#include <algorithm>

#include "base/check.h"

namespace headrace::reader {
namespace {

// The entry of `key` in a row, or null.
const RowMapEntry* Find(const RowMapColumn& map, uint64_t row, int64_t key) {
  const RowMapEntry* begin = map.entries.data() + map.row_offsets[row];
  const RowMapEntry* end = map.entries.data() + map.row_offsets[row + 1];
  const RowMapEntry* at = std::lower_bound(
      begin, end, key, [](const RowMapEntry& entry, int64_t k) { return entry.key < k; });
  return at != end && at->key == key ? at : nullptr;
}

void SetPresent(PresenceBits* present, uint64_t row) {
  present->words[row >> 6] |= uint64_t{1} << (row & 63);
  ++present->count;
}

}  // namespace

uint64_t RowMapBatch::MemoryBytes() const {
  uint64_t bytes = 0;
  for (const RowMapColumn& map : maps)
    bytes += 4 * map.row_offsets.size() + sizeof(RowMapEntry) * map.entries.size() +
             8 * map.ids.size() + 4 * map.floats.size();
  return bytes;
}

RowMapColumn ToRowMaps(const FlatMapBatch& batch, const std::string& name, FeatureKind kind,
                       const std::vector<RowMapFeature>& features) {
  RowMapColumn map;
  map.name = name;
  map.kind = kind;
  struct Input {
    int64_t key;
    const PresenceBits* present;
    const DenseColumn* dense = nullptr;
    const SparseColumn* sparse = nullptr;
  };
  auto& columns = const_cast<FlatMapBatch&>(batch);  // Find* are lookups only
  std::vector<Input> inputs;
  for (const RowMapFeature& feature : features) {
    Input input{feature.key, nullptr};
    if (kind == FeatureKind::kDense) {
      input.dense = columns.FindDense(feature.name);
      HR_CHECK(input.dense != nullptr, "a projected dense feature is a column of the batch");
      input.present = &input.dense->present;
    } else {
      input.sparse = columns.FindSparse(feature.name);
      HR_CHECK(input.sparse != nullptr, "a projected sparse feature is a column of the batch");
      input.present = &input.sparse->present;
    }
    inputs.push_back(input);
  }
  std::stable_sort(inputs.begin(), inputs.end(),
                   [](const Input& a, const Input& b) { return a.key < b.key; });
  map.row_offsets.reserve(batch.rows + 1);
  map.row_offsets.push_back(0);
  for (uint64_t row = 0; row < batch.rows; ++row) {
    for (const Input& input : inputs) {
      if (!input.present->Get(row)) continue;
      RowMapEntry entry{input.key, 0, 1};
      if (input.dense != nullptr) {
        entry.first = static_cast<uint32_t>(map.floats.size());
        map.floats.push_back(input.dense->values[row]);
      } else {
        const SparseColumn& column = *input.sparse;
        const uint32_t begin = column.offsets[row], end = column.offsets[row + 1];
        entry.first = static_cast<uint32_t>(map.ids.size());
        entry.count = end - begin;
        map.ids.insert(map.ids.end(), column.values.begin() + begin, column.values.begin() + end);
        if (column.weighted)
          map.floats.insert(map.floats.end(), column.weights.begin() + begin,
                            column.weights.begin() + end);
      }
      map.entries.push_back(entry);
    }
    map.row_offsets.push_back(static_cast<uint32_t>(map.entries.size()));
  }
  return map;
}

void ToColumns(const RowMapColumn& map, const std::vector<RowMapFeature>& features,
               FlatMapBatch* batch) {
  const uint64_t rows = map.row_offsets.size() - 1, words = (rows + 63) / 64;
  if (map.kind == FeatureKind::kDense) {
    const size_t begin = batch->dense.size();
    for (const RowMapFeature& feature : features) {
      DenseColumn& column = batch->dense.emplace_back();
      column.name = feature.name;
      column.present.words.resize(words);
      column.values.assign(rows, 0);
    }
    for (uint64_t row = 0; row < rows; ++row) {
      for (size_t f = 0; f < features.size(); ++f) {
        const RowMapEntry* entry = Find(map, row, features[f].key);
        if (entry == nullptr) continue;
        DenseColumn& column = batch->dense[begin + f];
        SetPresent(&column.present, row);
        column.values[row] = map.floats[entry->first];
      }
    }
    return;
  }
  const size_t begin = batch->sparse.size();
  for (const RowMapFeature& feature : features) {
    SparseColumn& column = batch->sparse.emplace_back();
    column.name = feature.name;
    column.weighted = map.kind == FeatureKind::kWeightedSparse;
    column.present.words.resize(words);
    column.offsets.reserve(rows + 1);
    column.offsets.push_back(0);
  }
  for (uint64_t row = 0; row < rows; ++row) {
    for (size_t f = 0; f < features.size(); ++f) {
      SparseColumn& column = batch->sparse[begin + f];
      if (const RowMapEntry* entry = Find(map, row, features[f].key)) {
        SetPresent(&column.present, row);
        const auto first = map.ids.begin() + entry->first;
        column.values.insert(column.values.end(), first, first + entry->count);
        if (column.weighted) {
          const auto weight = map.floats.begin() + entry->first;
          column.weights.insert(column.weights.end(), weight, weight + entry->count);
        }
      }
      column.offsets.push_back(static_cast<uint32_t>(column.values.size()));
    }
  }
}

}  // namespace headrace::reader
