// The words of the preprocessing service (docs/service.md), as plain structs.
//
// A unit is rows [k w, (k+1) w) of a split, w = unit_rows, before any filter: what one client gets
// in one frame. A deal says which client gets which unit of a split, a lease gives a split with its
// deal to a worker:
//
//   split 7, rows 1000..1009, unit_rows 4, deal {first 1, stride 1} over 2 ranks
//   unit 0: rows 1000..1003 -> rank 1    unit 1: 1004..1007 -> rank 0    unit 2: 1008..1009 -> rank
//   1
#pragma once
#include <algorithm>
#include <cstdint>
#include <vector>

#include "reader/pipeline/delivery/ledger.h"

namespace headrace::reader::service {

// How the rows of a job are divided among its ranks.
enum class Mode : uint8_t {
  kLockstep = 0,     // every rank gets as many rows as the others, to within a unit or so
  kIndependent = 1,  // a rank that takes more gets more
};

struct Deal {
  uint32_t first = 0, stride = 0, ranks = 1;
  uint32_t RankOf(uint64_t unit) const {
    return static_cast<uint32_t>((first + stride * (unit % ranks)) % ranks);
  }
  bool operator==(const Deal&) const = default;
};

// Units of `unit_rows` rows; 0: a split is one unit.
inline uint64_t NumUnits(uint64_t rows, uint64_t unit_rows) {
  if (rows == 0) return 0;
  return unit_rows == 0 ? 1 : (rows - 1) / unit_rows + 1;
}
inline uint64_t UnitOf(const RowRange& split, uint64_t row, uint64_t unit_rows) {
  return unit_rows == 0 ? 0 : (row - split.first) / unit_rows;
}
// The rows of the table that unit `unit` of the split has.
inline RowRange RowsOfUnit(const RowRange& split, uint64_t unit, uint64_t unit_rows) {
  if (unit_rows == 0) return split;
  const uint64_t first = unit * unit_rows;
  return {split.first + first, std::min(unit_rows, split.count - first)};
}

// One reign of a dispatcher over a job: new at every start of a dispatcher and whenever the ranks
// begin again. 0: none.
using Term = uint64_t;

}  // namespace headrace::reader::service
