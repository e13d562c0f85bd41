#include "reader/batch/inverse_keyed_jagged_tensor.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.h"
#include "reader/batch/jagged_key.h"

namespace headrace::reader {
KeyedJaggedTensor InverseKeyedJaggedTensor::Expand() const {
  std::vector<JaggedKey> order;
  for (size_t key = 0; key < unique.keys.size(); ++key)
    order.push_back({&unique, key, inverse.data(), weighted});
  return GatherKeys(order, inverse.size());
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

}  // namespace headrace::reader
