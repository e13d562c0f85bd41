#include "reader/batch/flat_map_batch.h"

#include <string_view>

#include "reader/batch/recycle.h"

namespace headrace::reader {
namespace {

template <typename Column>
Column* FindByName(std::vector<Column>& columns, std::string_view name) {
  for (Column& column : columns) {
    if (column.name == name) return &column;
  }
  return nullptr;
}

template <typename T>
uint64_t Bytes(const std::vector<T>& values) {
  return values.size() * sizeof(T);
}

}  // namespace

FlatMapBatch::~FlatMapBatch() {
  for (DenseColumn& column : dense) RecycleVector(std::move(column.values));
  for (SparseColumn& column : sparse) {
    RecycleVector(std::move(column.offsets));
    RecycleVector(std::move(column.values));
    RecycleVector(std::move(column.weights));
  }
  for (ScalarColumn& column : scalars) {
    RecycleVector(std::move(column.integers));
    RecycleVector(std::move(column.floats));
  }
}

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
  for (const ScalarColumn& column : scalars) bytes += Bytes(column.integers) + Bytes(column.floats);
  return bytes;
}

}  // namespace headrace::reader
