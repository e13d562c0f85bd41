#include "reader/batch/tensor_batch.h"

namespace headrace::reader {
namespace {

template <typename T>
uint64_t Bytes(const Array<T>& values) {
  return values.size() * sizeof(T);
}
uint64_t Bytes(const KeyedJaggedTensor& tensor) {
  return Bytes(tensor.lengths) + Bytes(tensor.offsets) + Bytes(tensor.values) +
         Bytes(tensor.weights);
}

}  // namespace

uint64_t TensorBatch::MemoryBytes() const {
  uint64_t grouped = 0;
  for (const InverseKeyedJaggedTensor& group : groups)
    grouped += Bytes(group.unique) + Bytes(group.inverse);
  return grouped + Bytes(dense) + Bytes(sparse) + Bytes(weighted_sparse) + Bytes(labels) +
         Bytes(row_ids);
}

}  // namespace headrace::reader
