#include "reader/service/unit_order.h"

#include <fmt/format.h>

#include <utility>
#include <vector>

#include "base/error.h"

namespace headrace::reader::service {

void CheckInOrder(const DeliveryLedger& has, uint32_t rank, uint32_t ranks, uint64_t unit_rows) {
  if (ranks == 1) return;
  std::vector<uint64_t> first_unit;
  uint64_t units = 0;
  for (const RowRange& split : has.splits()) {
    first_unit.push_back(units);
    units += NumUnits(split.count, unit_rows);
  }
  has.EachSettled(0, [&](const RowSpan& span) {
    const RowRange& split = has.splits()[span.split];
    const uint64_t last = UnitOf(split, span.first + span.count - 1, unit_rows);
    for (uint64_t unit = UnitOf(split, span.first, unit_rows); unit <= last; ++unit) {
      if ((first_unit[span.split] + unit) % ranks == rank) continue;
      throw Error(
          ExitCode::kUsage,
          fmt::format("its state of epoch {} has rows that are another rank's when rows keep "
                      "the table's order",
                      span.epoch),
          fmt::format("rank {}", rank),
          "go on with the ranks, batch_rows and order that it was made with");
    }
  });
}

UnitOrder::UnitOrder(DeliveryLedger has, uint64_t epochs, uint64_t unit_rows, uint32_t rank,
                     uint32_t ranks)
    : has_(std::move(has)), epochs_(epochs), unit_rows_(unit_rows), rank_(rank), ranks_(ranks) {
  std::get<0>(turn_) = has_.first_epoch();
  if (!IsOurs()) Advance();
}

bool UnitOrder::IsOurs() const {
  const auto [epoch, split, unit] = turn_;
  if (epoch >= epochs_) return true;  // the end
  if (split >= has_.splits().size()) return false;
  const RowRange& range = has_.splits()[split];
  if (unit >= NumUnits(range.count, unit_rows_) || passed_ % ranks_ != rank_) return false;
  const RowRange rows = RowsOfUnit(range, unit, unit_rows_);
  return !has_.Unsettled({epoch, split, rows.first, rows.count, rows.count}).empty();
}

// To the next unit that is to come.
void UnitOrder::Advance() {
  auto& [epoch, split, unit] = turn_;
  do {
    if (split >= has_.splits().size()) {
      ++epoch;
      split = unit = passed_ = 0;
    } else if (unit >= NumUnits(has_.splits()[split].count, unit_rows_)) {
      ++split;
      unit = 0;
    } else {
      ++unit;
      ++passed_;
    }
  } while (!IsOurs());
}

void UnitOrder::Add(TensorBatch&& unit) {
  const RowSpan& first = unit.spans.front();
  const Place place{first.epoch, first.split,
                    UnitOf(has_.splits().at(first.split), first.first, unit_rows_)};
  waiting_.emplace(place, std::move(unit));
}

std::optional<TensorBatch> UnitOrder::Next() {
  const auto found = waiting_.find(turn_);
  if (found == waiting_.end()) return std::nullopt;
  TensorBatch unit = std::move(found->second);
  waiting_.erase(found);
  Advance();
  return unit;
}

}  // namespace headrace::reader::service
