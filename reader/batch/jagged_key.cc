#include "reader/batch/jagged_key.h"

#include <cstring>

namespace headrace::reader {

KeyedJaggedTensor GatherKeys(const std::vector<JaggedKey>& order, uint64_t rows) {
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

}  // namespace headrace::reader
