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

template <typename T>
void Own(Array<T>* values) {
  if (values->borrowed()) *values = values->Clone();
}
void Own(KeyedJaggedTensor* tensor) {
  Own(&tensor->lengths);
  Own(&tensor->offsets);
  Own(&tensor->values);
  Own(&tensor->weights);
}

}  // namespace

uint64_t TensorBatch::MemoryBytes() const {
  uint64_t grouped = 0;
  for (const InverseKeyedJaggedTensor& group : groups)
    grouped += Bytes(group.unique) + Bytes(group.inverse);
  return grouped + Bytes(dense) + Bytes(sparse) + Bytes(weighted_sparse) + Bytes(labels) +
         Bytes(row_ids);
}

void OwnMemory(TensorBatch* batch) {
  if (!batch->is_lent) return;
  Own(&batch->dense);
  Own(&batch->sparse);
  Own(&batch->weighted_sparse);
  for (InverseKeyedJaggedTensor& group : batch->groups) {
    Own(&group.unique);
    Own(&group.inverse);
  }
  Own(&batch->labels);
  Own(&batch->row_ids);
  batch->is_lent = false;
}

std::vector<JaggedKey> KeysInOrder(const TensorBatch& batch, bool weighted) {
  const KeyedJaggedTensor& plain = weighted ? batch.weighted_sparse : batch.sparse;
  size_t total = plain.keys.size();
  for (const InverseKeyedJaggedTensor& group : batch.groups)
    total += group.weighted == weighted ? group.unique.keys.size() : 0;
  std::vector<JaggedKey> order(total);
  for (const InverseKeyedJaggedTensor& group : batch.groups) {
    if (group.weighted != weighted) continue;
    for (size_t key = 0; key < group.unique.keys.size(); ++key)
      order.at(group.places[key]) = {&group.unique, key, group.inverse.data(), weighted};
  }
  // The others fill the gaps, in their order.
  size_t place = 0;
  for (size_t key = 0; key < plain.keys.size(); ++key, ++place) {
    while (order.at(place).tensor != nullptr) ++place;
    order[place] = {&plain, key, nullptr, weighted};
  }
  return order;
}

ExpandedLists Expand(const TensorBatch& batch) {
  return {GatherKeys(KeysInOrder(batch, false), batch.rows),
          GatherKeys(KeysInOrder(batch, true), batch.rows)};
}

void ExpandGroups(TensorBatch* batch) {
  if (batch->groups.empty()) return;
  ExpandedLists lists = Expand(*batch);
  batch->sparse = std::move(lists.sparse);
  batch->weighted_sparse = std::move(lists.weighted_sparse);
  batch->groups.clear();
}

}  // namespace headrace::reader
