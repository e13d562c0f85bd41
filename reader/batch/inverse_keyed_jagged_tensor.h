// InverseKeyedJaggedTensor: a keyed jagged tensor of unique rows, and for each row of the batch the
// number of its unique row (RecD, MLSys 2023, arXiv 2211.05239). One inverse for all keys of a
// group that repeat together.
//
//   keys {"u"}, rows [1,2], [1,2], [7], [1,2]
//   unique: lengths 2 1, values 1 2 7      inverse 0 0 1 0
//
// Row r of key k is row inverse[r] of key k in `unique`. As TorchRec's KeyedJaggedTensor with
// inverse indices.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "reader/batch/keyed_jagged_tensor.h"

namespace headrace::reader {

struct InverseKeyedJaggedTensor {
  std::string name;  // of the group
  KeyedJaggedTensor unique;
  Array<int32_t> inverse;  // one per row of the batch, from 0, below unique.rows
  // For each key, its position among all the batch's keys of its kind (with or without weights).
  std::vector<uint32_t> places;
  bool weighted = false;

  // The same lists, one for each row of the batch: keys as in `unique`.
  KeyedJaggedTensor Expand() const;
};

// Throws Error kBadData naming the group unless the tensor keeps these promises.
void Validate(const InverseKeyedJaggedTensor& tensor);

}  // namespace headrace::reader
