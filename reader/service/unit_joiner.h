// UnitJoiner: puts the rows of a unit together that a pipeline made in pieces (row filters cut
// slices elsewhere than at the ends of units), so that a client gets each unit in one frame or not
// at all. Not thread-safe.
#pragma once
#include <cstdint>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "reader/pipeline/element.h"
#include "reader/service/lease.h"

namespace headrace::reader::service {

// Rows of the table that are both in the unit and wanted.
uint64_t WantedRowsOf(const std::vector<RowRange>& wanted, const RowRange& unit);

class UnitJoiner {
 public:
  // A piece of unit `unit` of lease `lease`: a TensorBatch whose spans are of this unit alone, and
  // which may have no rows. The unit, once `wanted_rows` rows of the table are there; nothing
  // before.
  std::optional<Element> Add(uint64_t lease, uint64_t unit, uint64_t wanted_rows, Element&& piece);
  // The lease is void: its pieces go.
  void Drop(uint64_t lease);

 private:
  struct Pieces {
    std::vector<Element> elements;
    uint64_t rows = 0;  // of the table
  };
  std::map<std::pair<uint64_t, uint64_t>, Pieces> pieces_;
};

}  // namespace headrace::reader::service
