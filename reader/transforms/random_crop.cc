// RandomCrop: keeps `count` neighbouring ids of each list, from a random place: augmentation, and
// the standing example of a transform whose result must not be cached. The place is a hash of the
// row's number in the table, so that it does not depend on threads, batches or order.
// Shape: lists -> lists, never longer.  Cost: one hash per row, one copy of the ids kept.
#include <algorithm>

#include "reader/batch/array.h"
#include "reader/transforms/id_hash.h"
#include "reader/transforms/lists.h"
#include "reader/transforms/transform.h"

namespace headrace::reader {
namespace {

struct RandomCrop final : ListTransform {
  explicit RandomCrop(const Params& params)
      : seed(CombineHashes(params.seed(), MixId(static_cast<uint64_t>(params.Integer("seed", 0))))),
        count(static_cast<uint64_t>(params.Integer("count"))) {
    params.Require(params.Integer("count") >= 0, "count", "not be negative");
  }

  // Where the crop of a list of `length` > count ids begins, each of the length - count + 1 places
  // with the same probability: the hash as a fraction of 2^64, times their number.
  uint64_t Start(uint64_t row_id, uint64_t length) const {
    const uint64_t hash = CombineHashes(seed, MixId(row_id));
    return static_cast<uint64_t>((static_cast<unsigned __int128>(hash) * (length - count + 1)) >>
                                 64);
  }

  void Reference(const TransformInputs& in, SparseColumn* out) const override {
    const SparseColumn& from = *in.sparse[0];
    out->present = from.present;
    out->weighted = from.weighted;
    out->offsets.push_back(0);
    for (uint64_t row = 0; row < in.rows; ++row) {
      const uint64_t length = from.offsets[row + 1] - from.offsets[row];
      const uint64_t start = length > count ? Start(in.RowId(row), length) : 0;
      for (uint64_t i = start; i < std::min(start + count, length); ++i) {
        out->values.push_back(from.values[from.offsets[row] + i]);
        if (!from.weights.empty()) out->weights.push_back(from.weights[from.offsets[row] + i]);
      }
      out->offsets.push_back(static_cast<uint32_t>(out->values.size()));
    }
  }

  void Apply(const TransformInputs& in, SparseColumn* out, InstructionSet) const override {
    const SparseColumn& from = *in.sparse[0];
    ReserveLists(out, in.rows, from.values.size());
    out->present = from.present;
    out->weighted = from.weighted;
    if (!from.weights.empty()) out->weights = Array<float>(from.values.size());
    uint32_t used = 0;
    for (uint64_t row = 0; row < in.rows; ++row) {
      const uint64_t length = from.offsets[row + 1] - from.offsets[row];
      const uint64_t first =
          from.offsets[row] + (length > count ? Start(in.RowId(row), length) : 0);
      const uint64_t kept = std::min(count, length);
      std::copy_n(from.values.data() + first, kept, out->values.data() + used);
      if (!from.weights.empty())
        std::copy_n(from.weights.data() + first, kept, out->weights.data() + used);
      used += static_cast<uint32_t>(kept);
      out->offsets[row + 1] = used;
    }
    out->values.resize(used);
    if (!from.weights.empty()) out->weights.resize(used);
  }

  uint64_t seed, count;
};

HR_TRANSFORM(
    "random_crop", RandomCrop,
    {.summary = "Keeps `count` neighbouring ids of each list, from a random place.",
     .semantics =
         "Each place is equally likely. It depends on the pipeline's seed, on `seed`, on the "
         "list's "
         "length and on the row's number in the table, never on threads or batches; two crops of "
         "one pipeline draw independently. A list that is not longer than `count` stays as it is. "
         "Weights are cut alike.",
     .cost = "per row (one hash), then a copy of the ids kept",
     .inputs = {InputKind::kAnyIds},
     .max_inputs = 1,
     .output = OutputKind::kAsFirstInput,
     .params = {{"count", "integer", "", "longest list that remains, >= 0"},
                {"seed", "integer", "0", "changes where lists are cut"}},
     .examples = {{"count=2", "7 7 7 7 | 8 9 | () | - | 5", "7 7 | 8 9 | () | - | 5"},
                  {"count=0", "7 8 | -", "() | -"},
                  {"count=1", "7:0.5 7:0.5 | -", "7:0.5 | -"}},
     .random = true,
     .use = IdUse::kPlaces,
     .make = nullptr});

}  // namespace
}  // namespace headrace::reader
