// KeyedJaggedTensor: k sparse features (keys) of one batch of n rows in one values array,
// feature-major, as TorchRec's.
//
//   keys = {"a", "b"}, rows = 2      row 0     row 1
//                               a    [1, 2]    []
//                               b    [3]       [4, 5, 6]
//   values  = 1 2 3 4 5 6            lengths = 2 0 1 3   (length of key k, row r at k * rows + r)
//   offsets = 0 2 2 3 6              (k * rows + 1 entries)
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "reader/batch/array.h"

namespace headrace::reader {

struct KeyedJaggedTensor {
  std::vector<std::string> keys;
  uint64_t rows = 0;
  Array<int32_t> lengths;  // keys * rows
  Array<int64_t> offsets;  // keys * rows + 1
  Array<int64_t> values;   // offsets.back()
  Array<float> weights;    // empty, or as long as values
};

// Throws Error kBadData unless the tensor keeps these promises. For tests and for tensors that came
// from outside.
void Validate(const KeyedJaggedTensor& tensor);

}  // namespace headrace::reader
