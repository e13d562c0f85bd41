// JaggedKey: the lists of one key, and tensors made of several.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "reader/batch/keyed_jagged_tensor.h"

namespace headrace::reader {

// A view of one key's lists, wherever the batch stores them.
struct JaggedKey {
  const KeyedJaggedTensor* tensor = nullptr;
  size_t key = 0;                    // in `tensor`
  const int32_t* inverse = nullptr;  // of its group; null: row r is row r of the tensor
  bool weighted = false;

  const std::string& name() const { return tensor->keys[key]; }
  uint64_t Row(uint64_t row) const {
    return inverse == nullptr ? row : static_cast<uint64_t>(inverse[row]);
  }
  const int32_t* lengths() const { return tensor->lengths.data() + key * tensor->rows; }
  const int64_t* offsets() const { return tensor->offsets.data() + key * tensor->rows; }
};

// Keys `order` (views) one after the other in one tensor of `rows` rows.
KeyedJaggedTensor GatherKeys(const std::vector<JaggedKey>& order, uint64_t rows);

}  // namespace headrace::reader
