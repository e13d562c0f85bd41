// What the fast path must give, taken from rows in the general form (Column) by the plainest walk.
#pragma once
#include <gtest/gtest.h>

#include <string>

#include "reader/batch/column.h"
#include "reader/batch/flat_map_batch.h"
#include "reader/batch/tensorize.h"
#include "reader/dwrf/projection.h"

namespace headrace::reader::dwrf {

inline double NumberAt(const Column& column, uint64_t i) {
  if (column.kind == TypeKind::kFloat) return static_cast<double>(column.floats[i]);
  if (column.kind == TypeKind::kDouble) return column.doubles[i];
  return static_cast<double>(column.integers[i]);
}

inline bool KeyAt(const Column& keys, uint64_t i, const MapKey& key) {
  if (keys.IsNull(i)) return false;
  if (!key.is_text) return !keys.integers.empty() && keys.integers[i] == key.integer;
  return keys.bytes.compare(keys.offsets[i], keys.offsets[i + 1] - keys.offsets[i], key.text) == 0;
}

// The entry of `key` in row `row` of a map, or -1: null map, no such key, or null value.
inline int64_t EntryOf(const Column& map, uint64_t row, const MapKey& key) {
  if (map.IsNull(row)) return -1;
  for (uint64_t i = map.offsets[row]; i < map.offsets[row + 1]; ++i) {
    if (KeyAt(map.children[0], i, key))
      return map.children[1].IsNull(i) ? -1 : static_cast<int64_t>(i);
  }
  return -1;
}

// Compares the rows [first, first + batch.rows) of one feature.
inline void ExpectFeature(const Column& map, const MapKey& key, uint64_t first,
                          const FlatMapBatch& batch, size_t* next_dense, size_t* next_sparse) {
  const Column& values = map.children[1];
  const bool is_dense = values.kind != TypeKind::kList && values.kind != TypeKind::kMap;
  if (is_dense) {
    const DenseColumn& column = batch.dense[(*next_dense)++];
    for (uint64_t row = 0; row < batch.rows; ++row) {
      const int64_t entry = EntryOf(map, first + row, key);
      ASSERT_EQ(column.present.Get(row), entry >= 0) << column.name << " row " << first + row;
      if (entry >= 0) {
        ASSERT_EQ(column.values[row],
                  static_cast<float>(NumberAt(values, static_cast<uint64_t>(entry))))
            << column.name << " row " << first + row;
      }
    }
    return;
  }
  const SparseColumn& column = batch.sparse[(*next_sparse)++];
  const bool weighted = values.kind == TypeKind::kMap;
  ASSERT_EQ(column.weighted, weighted);
  for (uint64_t row = 0; row < batch.rows; ++row) {
    const int64_t entry = EntryOf(map, first + row, key);
    ASSERT_EQ(column.present.Get(row), entry >= 0) << column.name << " row " << first + row;
    std::vector<int64_t> ids;
    std::vector<float> weights;
    for (uint64_t i = entry < 0 ? 1 : values.offsets[static_cast<size_t>(entry)];
         i < (entry < 0 ? 1 : values.offsets[static_cast<size_t>(entry) + 1]); ++i) {
      if (values.children[0].IsNull(i) || (weighted && values.children[1].IsNull(i))) continue;
      ids.push_back(values.children[0].integers[i]);
      if (weighted) weights.push_back(static_cast<float>(NumberAt(values.children[1], i)));
    }
    const auto begin = column.offsets[row], end = column.offsets[row + 1];
    ASSERT_EQ(std::vector<int64_t>(column.values.begin() + begin, column.values.begin() + end), ids)
        << column.name << " row " << first + row;
    if (weighted) {
      ASSERT_EQ(std::vector<float>(column.weights.begin() + begin, column.weights.begin() + end),
                weights)
          << column.name << " row " << first + row;
    }
  }
}

// `root`: the columns of `schema` over at least first + batch.rows rows.
inline void ExpectBatch(const Schema& schema, const Column& root, const Projection& projection,
                        uint64_t first, const FlatMapBatch& batch) {
  Validate(batch);
  size_t next_dense = 0, next_sparse = 0;
  const auto column_of = [&](const std::string& name) -> const Column& {
    for (size_t i = 0; i < schema.root().field_names.size(); ++i) {
      if (schema.root().field_names[i] == name) return root.children[i];
    }
    throw std::out_of_range(name);
  };
  for (const FeatureRequest& request : projection.features) {
    ExpectFeature(column_of(request.column), request.key, first, batch, &next_dense, &next_sparse);
    if (::testing::Test::HasFatalFailure()) return;
  }
  for (size_t i = 0; i < projection.columns.size(); ++i) {
    const Column& column = column_of(projection.columns[i]);
    const ScalarColumn& scalar = batch.scalars[i];
    for (uint64_t row = 0; row < batch.rows; ++row) {
      const double expected = column.IsNull(first + row) ? 0 : NumberAt(column, first + row);
      if (scalar.is_float) {
        ASSERT_EQ(scalar.floats[row], static_cast<float>(expected))
            << scalar.name << " row " << first + row;
      } else {
        ASSERT_EQ(scalar.integers[row],
                  column.IsNull(first + row) ? 0 : column.integers[first + row])
            << scalar.name << " row " << first + row;
      }
    }
  }
}

}  // namespace headrace::reader::dwrf
