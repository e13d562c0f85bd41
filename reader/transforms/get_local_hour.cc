// GetLocalHour: the local hour of day of a timestamp column, as a list of one id in [0, 24).
// Shape: int64[rows] -> one id per row.  Cost: one division by a constant per row.
#include <cmath>

#include "reader/transforms/lists.h"
#include "reader/transforms/transform.h"

namespace headrace::reader {
namespace {

constexpr int64_t kDaySeconds = 24 * 3600;

int64_t FloorDivide(int64_t x, int64_t divisor) { return x / divisor - (x % divisor < 0); }

struct GetLocalHour final : ListTransform {
  explicit GetLocalHour(const Params& params)
      : offset_seconds(std::llround(params.Real("offset_hours", 0) * 3600)) {
    params.Require(std::abs(params.Real("offset_hours", 0)) <= 24, "offset_hours",
                   "be between -24 and 24");
    const std::string unit = params.Text("unit", "s");
    for (const auto& [name, per_second] : {std::pair<const char*, int64_t>{"s", 1},
                                           {"ms", 1000},
                                           {"us", 1000000},
                                           {"ns", 1000000000}})
      if (unit == name) units_per_second = per_second;
    params.Require(units_per_second != 0, "unit", "be \"s\", \"ms\", \"us\" or \"ns\"");
  }

  // The offset is added to the second of the day, where nothing can overflow.
  int64_t Hour(int64_t time) const {
    const int64_t of_day = FloorDivide(time, units_per_second) % kDaySeconds;  // may be negative
    return (of_day + offset_seconds + 2 * kDaySeconds) % kDaySeconds / 3600;
  }

  void Reference(const TransformInputs& in, SparseColumn* out) const override {
    ReserveLists(out, in.rows, in.rows);
    out->present = AllPresent(in.rows);
    for (uint64_t row = 0; row < in.rows; ++row) {
      out->values[row] = Hour(in.scalars[0]->integers[row]);
      out->offsets[row + 1] = static_cast<uint32_t>(row + 1);
    }
  }

  int64_t offset_seconds;
  int64_t units_per_second = 0;
};

HR_TRANSFORM("get_local_hour", GetLocalHour,
             {.summary = "Gives the local hour of day, 0 to 23, of a timestamp column.",
              .semantics = "Unix time plus a fixed offset; times before 1970 count downwards from "
                           "midnight. Every row gets a list of one id.",
              .cost = "per row, compute-bound (integer divisions)",
              .inputs = {InputKind::kInteger},
              .max_inputs = 1,
              .output = OutputKind::kSparse,
              .params = {{"offset_hours", "real", "0", "local time minus UTC, -24 to 24"},
                         {"unit", "text", "s", "unit of the timestamps: s, ms, us, ns"}},
              .examples = {{"offset_hours=0", "0 3599 3600 86399 -1", "0 | 0 | 1 | 23 | 23"},
                           {"offset_hours=-8", "0 28800 -9223372036854775808", "16 | 0 | 0"},
                           {"offset_hours=5.5 unit=ms", "1000 1800000", "5 | 6"}},
              .use = IdUse::kEach,
              .make = nullptr});

}  // namespace
}  // namespace headrace::reader
