// Enumerate: replaces each id by its position in its list, for models that learn from the order.
// Shape: lists -> lists of the same lengths.  Cost: one store per id, memory-bound.
#include <numeric>

#include "reader/transforms/lists.h"
#include "reader/transforms/transform.h"

namespace headrace::reader {
namespace {

struct Enumerate final : ListTransform {
  explicit Enumerate(const Params& params) : start(params.Integer("start", 0)) {
    params.Require(start >= -(1LL << 62) && start <= 1LL << 62, "start", "be at most 2^62 in size");
  }

  void Reference(const TransformInputs& in, SparseColumn* out) const override {
    const SparseColumn& from = *in.sparse[0];
    ReserveLists(out, in.rows, from.values.size());
    out->present = from.present;
    out->offsets = from.offsets.Clone();
    for (uint64_t row = 0; row < in.rows; ++row)
      std::iota(out->values.begin() + from.offsets[row],
                out->values.begin() + from.offsets[row + 1], start);
  }

  int64_t start;
};

HR_TRANSFORM("enumerate", Enumerate,
             {.summary = "Replaces each id by its position in its list.",
              .semantics = "As Python's `enumerate`, positions only. Weights are dropped.",
              .cost = "per id, memory-bound",
              .inputs = {InputKind::kAnyIds},
              .max_inputs = 1,
              .output = OutputKind::kSparse,
              .params = {{"start", "integer", "0", "position of the first id"}},
              .examples = {{"", "7 7 9 | () | - | 5", "0 1 2 | () | - | 0"},
                           {"start=1", "7:0.5 8:1", "1 2"}},
              .make = nullptr});

}  // namespace
}  // namespace headrace::reader
