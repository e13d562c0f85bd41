// UnitOrder: the units of a rank in the table's order. Unit n of an epoch, counted through all its
// splits, belongs to rank n mod ranks; workers send units as they come, and each waits here for its
// turn.
//
//   2 ranks, splits of 3 and 2 units: rank 0 has units 0, 2 and 4, which are unit 0 and 2 of split
//   0 and unit 1 of split 1
#pragma once
#include <cstdint>
#include <map>
#include <optional>
#include <tuple>

#include "reader/batch/tensor_batch.h"
#include "reader/pipeline/delivery/ledger.h"
#include "reader/service/lease.h"

namespace headrace::reader::service {

// Throws Error kUsage when rows that a rank has are of units that are not its own: they were
// divided in another way.
void CheckInOrder(const DeliveryLedger& has, uint32_t rank, uint32_t ranks, uint64_t unit_rows);

// Not thread-safe.
class UnitOrder {
 public:
  // `has`: what the rank has from the beginning; units of it do not come again.
  UnitOrder(DeliveryLedger has, uint64_t epochs, uint64_t unit_rows, uint32_t rank, uint32_t ranks);

  // A unit with at least one span.
  void Add(TensorBatch&& unit);
  // The unit whose turn it is, if it is here.
  std::optional<TensorBatch> Next();
  size_t waiting() const { return waiting_.size(); }

 private:
  using Place = std::tuple<uint64_t, uint64_t, uint64_t>;  // epoch, split, unit of the split
  bool IsOurs() const;
  void Advance();

  const DeliveryLedger has_;
  const uint64_t epochs_, unit_rows_;
  const uint32_t rank_, ranks_;
  Place turn_ = {0, 0, 0};
  uint64_t passed_ = 0;  // units of the epoch before turn_
  std::map<Place, TensorBatch> waiting_;
};

}  // namespace headrace::reader::service
