#include "reader/batch/row_filter.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/check.h"
#include "base/error.h"

namespace headrace::reader {
namespace {

template <typename Value>
void Compare(const RowFilter& filter, std::span<uint8_t> keep, const Value& value) {
  for (uint64_t row = 0; row < keep.size(); ++row)
    if (keep[row] != 0 && !filter.Passes(value(row))) keep[row] = 0;
}

template <typename Column>
const Column* Find(const std::vector<Column>& columns, const std::string& name) {
  const auto found = std::find_if(columns.begin(), columns.end(),
                                  [&](const Column& column) { return column.name == name; });
  return found == columns.end() ? nullptr : &*found;
}

// As the nearest float, but for what floats do not reach: as 0 or infinity it would let others
// through.
long double AsFloat(long double bound) {
  const auto rounded = static_cast<float>(bound);
  const bool is_lost = (rounded == 0 && bound != 0) || (std::isinf(rounded) && !std::isinf(bound));
  return is_lost ? bound : rounded;
}

}  // namespace

bool RowFilter::Passes(long double value) const {
  if (!(value >= min && value <= max)) return false;
  return in.empty() || std::find(in.begin(), in.end(), value) != in.end();
}

bool RowFilter::Passes(float value) const {
  if (!(value >= AsFloat(min) && value <= AsFloat(max))) return false;
  return in.empty() ||
         std::any_of(in.begin(), in.end(), [&](long double one) { return AsFloat(one) == value; });
}

void ApplyFilters(std::span<const RowFilter> filters, const FlatMapBatch& columns,
                  std::span<uint8_t> keep) {
  HR_CHECK(keep.size() == columns.rows, "one decision per row");
  for (const RowFilter& filter : filters) {
    if (filter.is_column) {
      if (const ScalarColumn* column = Find(columns.scalars, filter.name)) {
        if (column->is_float) {
          Compare(filter, keep, [&](uint64_t row) { return column->floats[row]; });
        } else {
          Compare(filter, keep, [&](uint64_t row) { return column->integers[row]; });
        }
        continue;
      }
    } else if (const DenseColumn* column = Find(columns.dense, filter.name)) {
      for (uint64_t row = 0; row < columns.rows; ++row) {
        const bool passes =
            column->present.Get(row) ? filter.Passes(column->values[row]) : filter.keep_absent;
        if (!passes) keep[row] = 0;
      }
      continue;
    }
    throw Error(
        ExitCode::kUsage,
        fmt::format("filter: there is no {} '{}' in the projection",
                    filter.is_column ? "plain column" : "dense feature", Printable(filter.name)),
        filter.where, "add it to [projection]");
  }
}

}  // namespace headrace::reader
