// TensorBatch: what a consumer takes. Owns its memory; moves, never copies.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "reader/batch/inverse_keyed_jagged_tensor.h"
#include "reader/batch/jagged_key.h"
#include "reader/batch/keyed_jagged_tensor.h"
#include "reader/batch/row_span.h"

namespace headrace::reader {

struct TensorBatch {
  uint64_t rows = 0;
  uint64_t first_row = 0;  // as FlatMapBatch::first_row
  std::vector<std::string> dense_names;
  Array<float> dense;                 // float[rows, dense_names.size()], row-major; absent = 0
  KeyedJaggedTensor sparse;           // all unweighted sparse features
  KeyedJaggedTensor weighted_sparse;  // all weighted ones, weights set
  // Deduplicated features; they are only here, not in the two above.
  std::vector<InverseKeyedJaggedTensor> groups;
  Array<float> labels;         // float[rows], empty when the table has no label column
  Array<uint64_t> row_ids;     // uint64[rows], global row numbers, for exactly-once checks
  std::vector<RowSpan> spans;  // the rows of the table that this batch settles
  bool is_lent = false;        // it holds memory that its producer waits for (OwnMemory)
  uint64_t term = 0;           // of a service's job (reader/service/lease.h); 0: none

  TensorBatch() = default;
  TensorBatch(TensorBatch&&) = default;
  TensorBatch& operator=(TensorBatch&&) = default;
  uint64_t RowId(uint64_t row) const { return row_ids.empty() ? first_row + row : row_ids[row]; }
  uint64_t MemoryBytes() const;
};

// Copies what is lent, so that the producer has it back: for whoever keeps a batch until others
// have come.
void OwnMemory(TensorBatch* batch);

// All keys with weights, or all without, in the order that they would have without deduplication.
std::vector<JaggedKey> KeysInOrder(const TensorBatch& batch, bool weighted);
// Expands all features into `sparse` and `weighted_sparse`, as if nothing had been deduplicated.
void ExpandGroups(TensorBatch* batch);
// What ExpandGroups puts there, for callers whose batch must stay as it is.
struct ExpandedLists {
  KeyedJaggedTensor sparse, weighted_sparse;
};
ExpandedLists Expand(const TensorBatch& batch);

}  // namespace headrace::reader
