// RowFilter: which rows a job wants, by cheap columns ([[filter]] of a pipeline file): a dense
// feature or a plain column of the projection, compared with bounds or a list. Rows must pass every
// filter. With layout "direct" filters are applied before the ids of a stripe are decoded
// (reader/dwrf/slices.h), so that ids of rows that do not pass are never decoded.
//
//   {column = "label", in = [1]}                     rows with label 1
//   {feature = "dense:3", min = 0.5, absent = "keep"} rows with dense:3 >= 0.5, or without it
#pragma once
#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <vector>

#include "reader/batch/flat_map_batch.h"

namespace headrace::reader {

struct RowFilter {
  std::string name;  // of a dense feature ("dense:3") or of a plain column ("label")
  bool is_column = false;
  // long double holds every 64-bit integer exactly, and every double.
  long double min = -std::numeric_limits<long double>::infinity();  // both inclusive
  long double max = std::numeric_limits<long double>::infinity();
  std::vector<long double> in;  // empty: any value within the bounds
  bool keep_absent = false;     // rows without the feature; a plain column's nulls read as 0
  std::string where;            // in the pipeline file, for messages

  // Whether a value of an integer column passes.
  bool Passes(long double value) const;
  // Floats are compared with the bounds as floats: a stored 0.1 passes max = 0.1 and in = [0.1],
  // which as doubles are a little less. One that as a float would be 0 or infinite is compared as
  // it is: min = 1e-50 lets no 0 through.
  bool Passes(float value) const;
  bool Passes(int64_t value) const { return Passes(static_cast<long double>(value)); }
};

// keep[r] = 0 for each row of `columns` that does not pass; the others stay as they are. NaN passes
// no filter. Throws Error kUsage when `columns` does not have a filter's column.
void ApplyFilters(std::span<const RowFilter> filters, const FlatMapBatch& columns,
                  std::span<uint8_t> keep);

}  // namespace headrace::reader
