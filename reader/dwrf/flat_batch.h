// FlatBatch: rows to be written, column by column.
#pragma once
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "reader/batch/column.h"
#include "reader/dwrf/stripe.h"

namespace headrace::reader::dwrf {

// One key of a flattened map over the rows of a batch. Values are compact: rows without the key
// take no place. All spans are the caller's and are read before WriteFlat returns.
//
//   map<int, list<bigint>>,       key 17, rows [7,8], absent, []
//       present bits 1 0 1,  lengths 2 0,  integers 7 8
//   map<int, float>,              key 3,  rows 0.5, absent, 2
//       present bits 1 0 1,  floats 0.5 2
//   map<int, map<bigint, float>>, key 4,  rows {7:.5}, {}, absent
//       present bits 1 1 0,  lengths 1 0,  integers 7,  floats .5
struct FlatFeature {
  MapKey key;
  std::span<const uint64_t>
      present;  // bit r % 64 of word r / 64: row r has the key. Empty: all rows have it
  std::span<const uint32_t> lengths;  // list and map values: one per row that has the key
  // The numbers: an integer value, list element or inner key in `integers`; a float one, and the
  // inner map's float values, in `floats`. Other types (double, strings, deeper nesting) go through
  // Write.
  std::span<const int64_t> integers;
  std::span<const float> floats;
};

// A top-level column of a batch: `features` for a flattened map (a map without any feature in this
// batch is an empty vector: its rows are empty maps, never null), else one of `integers` (boolean
// to bigint) and `floats`.
struct FlatColumn {
  std::string name;
  std::vector<FlatFeature> features;  // distinct keys, any order
  std::span<const uint64_t> present;  // plain columns: bit set = not null; empty = no nulls
  std::span<const int64_t> integers;  // one per row; those of null rows are ignored
  std::span<const float> floats;
};

struct FlatBatch {
  uint64_t rows = 0;
  std::vector<FlatColumn> columns;  // every top-level column of the schema once, any order
};

}  // namespace headrace::reader::dwrf
