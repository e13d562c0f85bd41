#include "reader/batch/inverse_keyed_jagged_tensor.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "base/error.h"
#include "reader/batch/tensor_batch.h"
#include "reader/batch/tensorize.h"

namespace headrace::reader {
namespace {

// Keys `order` (views) one after the other in one tensor of `rows` rows.
KeyedJaggedTensor Gather(const std::vector<JaggedKey>& order, uint64_t rows) {
  KeyedJaggedTensor out;
  out.rows = rows;
  out.lengths.resize(order.size() * rows);
  out.offsets.resize(order.size() * rows + 1);
  int64_t total = 0;
  uint64_t cell = 0;
  bool weighted = false;
  for (const JaggedKey& key : order) {
    out.keys.push_back(key.name());
    weighted |= key.weighted;
    for (uint64_t row = 0; row < rows; ++row, ++cell) {
      const int32_t length = key.lengths()[key.Row(row)];
      out.lengths[cell] = length;
      out.offsets[cell] = total;
      total += length;
    }
  }
  out.offsets[cell] = total;
  out.values.resize(static_cast<size_t>(total));
  if (weighted) out.weights.resize(static_cast<size_t>(total));
  cell = 0;
  for (const JaggedKey& key : order) {
    const int64_t* offsets = key.offsets();
    for (uint64_t row = 0; row < rows; ++row, ++cell) {
      const auto length = static_cast<size_t>(out.lengths[cell]);
      const auto from = static_cast<size_t>(offsets[key.Row(row)]);
      const auto to = static_cast<size_t>(out.offsets[cell]);
      if (length == 0) continue;
      std::memcpy(out.values.data() + to, key.tensor->values.data() + from,
                  length * sizeof(int64_t));
      if (weighted)
        std::memcpy(out.weights.data() + to, key.tensor->weights.data() + from,
                    length * sizeof(float));
    }
  }
  return out;
}

}  // namespace

KeyedJaggedTensor InverseKeyedJaggedTensor::Expand() const {
  std::vector<JaggedKey> order;
  for (size_t key = 0; key < unique.keys.size(); ++key)
    order.push_back({&unique, key, inverse.data(), weighted});
  return Gather(order, inverse.size());
}

void Validate(const InverseKeyedJaggedTensor& tensor) {
  Validate(tensor.unique);
  const auto broken = [&](const char* what) {
    throw Error(ExitCode::kBadData, fmt::format("group {}: {}", tensor.name, what));
  };
  const auto rows = static_cast<int64_t>(tensor.unique.rows);
  for (const int32_t row : tensor.inverse)
    if (row < 0 || row >= rows) broken("the inverse leads past the unique rows");
  if (tensor.places.size() != tensor.unique.keys.size()) broken("a key has no place");
  if (tensor.weighted && tensor.unique.weights.size() != tensor.unique.values.size())
    broken("weights differ in number from values");
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
  return {Gather(KeysInOrder(batch, false), batch.rows),
          Gather(KeysInOrder(batch, true), batch.rows)};
}

void ExpandGroups(TensorBatch* batch) {
  if (batch->groups.empty()) return;
  ExpandedLists lists = Expand(*batch);
  batch->sparse = std::move(lists.sparse);
  batch->weighted_sparse = std::move(lists.weighted_sparse);
  batch->groups.clear();
}

}  // namespace headrace::reader
