#include "reader/batch/flat_map_batch.h"

#include <string_view>

#include "reader/batch/array.h"

namespace headrace::reader {
namespace {

template <typename Column>
Column* FindByName(std::vector<Column>& columns, std::string_view name) {
  for (Column& column : columns) {
    if (column.name == name) return &column;
  }
  return nullptr;
}

template <typename Values>
uint64_t Bytes(const Values& values) {
  return values.size() * sizeof(typename Values::value_type);
}

}  // namespace

DenseColumn* FlatMapBatch::FindDense(std::string_view name) { return FindByName(dense, name); }
SparseColumn* FlatMapBatch::FindSparse(std::string_view name) { return FindByName(sparse, name); }
ScalarColumn* FlatMapBatch::FindScalar(std::string_view name) { return FindByName(scalars, name); }

uint64_t FlatMapBatch::MemoryBytes() const {
  uint64_t bytes = Bytes(row_ids);
  for (const DenseColumn& column : dense)
    bytes += Bytes(column.present.words) + Bytes(column.values);
  for (const SparseColumn& column : sparse) {
    bytes += Bytes(column.present.words) + Bytes(column.offsets) + Bytes(column.values) +
             Bytes(column.weights);
  }
  for (const DedupGroup& group : groups) bytes += Bytes(group.inverse);
  for (const ScalarColumn& column : scalars) bytes += Bytes(column.integers) + Bytes(column.floats);
  return bytes;
}

FlatMapBatch FlatMapBatch::Clone() const {
  FlatMapBatch copy;
  copy.rows = rows;
  copy.split_id = split_id;
  copy.first_row = first_row;
  copy.row_ids = row_ids;
  copy.spans = spans;
  copy.groups = groups;
  for (const DenseColumn& column : dense)
    copy.dense.push_back({column.name, column.present, column.values.Clone()});
  for (const SparseColumn& column : sparse) {
    copy.sparse.push_back({column.name, column.present, column.offsets.Clone(),
                           column.values.Clone(), column.weights.Clone(), column.weighted,
                           column.group, column.dictionary, column.decoded_values});
  }
  for (const ScalarColumn& column : scalars) {
    copy.scalars.push_back(
        {column.name, column.is_float, column.integers.Clone(), column.floats.Clone()});
  }
  return copy;
}

}  // namespace headrace::reader
