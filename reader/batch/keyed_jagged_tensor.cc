#include "reader/batch/keyed_jagged_tensor.h"

#include <fmt/format.h>

#include "base/error.h"

namespace headrace::reader {
namespace {

[[noreturn]] void Broken(const char* what) {
  throw Error(ExitCode::kBadData, fmt::format("column tensor: {}", what));
}

}  // namespace

void Validate(const KeyedJaggedTensor& tensor) {
  const uint64_t cells = tensor.keys.size() * tensor.rows;
  if (tensor.lengths.size() != cells || tensor.offsets.size() != cells + 1)
    Broken("lengths and offsets do not fit keys and rows");
  if (tensor.offsets[0] != 0 || tensor.offsets.back() != static_cast<int64_t>(tensor.values.size()))
    Broken("offsets do not span the values");
  for (uint64_t cell = 0; cell < cells; ++cell) {
    if (tensor.lengths[cell] < 0 ||
        tensor.offsets[cell + 1] - tensor.offsets[cell] != tensor.lengths[cell])
      Broken("a length differs from its offsets");
  }
  if (!tensor.weights.empty() && tensor.weights.size() != tensor.values.size())
    Broken("weights differ in number from values");
}

}  // namespace headrace::reader
