// Onehot: the one-hot code of a class number, as a list of `size` zeros and ones.
// Shape: float[rows] -> `size` ids per row that has the feature.  Cost: `size` stores per row,
// memory-bound.
#include <algorithm>

#include "reader/transforms/lists.h"
#include "reader/transforms/transform.h"

namespace headrace::reader {
namespace {

struct Onehot final : ListTransform {
  explicit Onehot(const Params& params) : size(params.Integer("size")) {
    params.Require(size >= 1 && size <= 1 << 20, "size", "be between 1 and 2^20");
  }

  void Reference(const TransformInputs& in, SparseColumn* out) const override {
    const DenseColumn& from = *in.dense[0];
    ReserveLists(out, in.rows, from.present.count * static_cast<uint64_t>(size));
    std::fill(out->values.begin(), out->values.end(), 0);
    out->present = from.present;
    uint32_t used = 0;
    for (uint64_t row = 0; row < in.rows; ++row) {
      if (from.present.Get(row)) {
        const float x = from.values[row];
        if (x >= 0 && x < static_cast<float>(size))
          out->values[used + static_cast<uint32_t>(x)] = 1;
        used += static_cast<uint32_t>(size);
      }
      out->offsets[row + 1] = used;
    }
  }

  int64_t size;
};

HR_TRANSFORM(
    "onehot", Onehot,
    {.summary = "Gives the one-hot code of a class number as a list of zeros and ones.",
     .semantics = "The value is cut to an integer; outside [0, size), and for NaN, the list "
                  "is all zeros.",
     .cost = "`size` stores per row, memory-bound",
     .inputs = {InputKind::kDense},
     .max_inputs = 1,
     .output = OutputKind::kSparse,
     .params = {{"size", "integer", "", "number of classes, 1 to 2^20"}},
     .examples = {{"size=3", "0 2.5 3 - nan -1", "1 0 0 | 0 0 1 | 0 0 0 | - | 0 0 0 | 0 0 0"}},
     .use = IdUse::kEach,
     .make = nullptr});

}  // namespace
}  // namespace headrace::reader
