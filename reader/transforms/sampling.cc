// Sampling: keeps each row with probability `rate`. The draw is a hash of the row's number in the
// table, so that the same rows stay whatever the threads, the batches or the order.
// Shape: rows -> fewer rows, all columns.  Cost: one hash per row, then a copy of the rows kept.
#include <cmath>

#include "reader/transforms/id_hash.h"
#include "reader/transforms/transform.h"

namespace headrace::reader {
namespace {

struct Sampling final : RowTransform {
  explicit Sampling(const Params& params)
      : seed(
            CombineHashes(params.seed(), MixId(static_cast<uint64_t>(params.Integer("seed", 0))))) {
    const double rate = params.Real("rate");
    params.Require(rate >= 0 && rate <= 1, "rate", "be between 0 and 1");
    share = rate;
    all = rate == 1;
    if (!all) threshold = static_cast<uint64_t>(std::ldexp(rate, 64));
  }

  void Reference(std::span<const uint64_t> row_ids, uint8_t* keep) const override {
    for (size_t row = 0; row < row_ids.size(); ++row)
      keep[row] = all || CombineHashes(seed, MixId(row_ids[row])) < threshold;
  }

  double Share() const override { return share; }

  double share;
  uint64_t seed;
  uint64_t threshold = 0;
  bool all = false;
};

HR_TRANSFORM(
    "sampling", Sampling,
    {.summary = "Keeps each row with probability `rate` and drops the others.",
     .semantics =
         "Acts on all columns. The draw depends on the pipeline's seed, on `seed`, and on "
         "the row's number in the table; two samplings of one pipeline draw independently.",
     .cost = "per row (one hash), then a copy of the rows kept",
     .inputs = {},
     .max_inputs = 0,
     .output = OutputKind::kRows,
     .params = {{"rate", "real", "", "share of rows that stay, 0 to 1"},
                {"seed", "integer", "0", "changes which rows stay"}},
     .examples = {{"rate=1", "0 1 2", "0 1 2"}, {"rate=0", "0 1 2", ""}},
     .random = true,
     .make = nullptr});

}  // namespace
}  // namespace headrace::reader
