// UnitOrder: whatever the order in which units come, a rank gets its own in the table's order; what
// it had before is not waited for.
#include "reader/service/unit_order.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <vector>

#include "base/error.h"
#include "tests/seed.h"

namespace headrace::reader::service {
namespace {

constexpr uint64_t kUnitRows = 4;

struct OrderedTable {
  std::vector<RowRange> splits;
  // The rows of the units of a rank, in order, of two epochs.
  std::vector<RowSpan> UnitsOf(uint32_t rank, uint32_t ranks) const {
    std::vector<RowSpan> units;
    for (uint64_t epoch = 0; epoch < 2; ++epoch) {
      uint64_t unit = 0;
      for (uint64_t split = 0; split < splits.size(); ++split)
        for (uint64_t of = 0; of < NumUnits(splits[split].count, kUnitRows); ++of) {
          const RowRange rows = RowsOfUnit(splits[split], of, kUnitRows);
          if (unit++ % ranks == rank)
            units.push_back({epoch, split, rows.first, rows.count, rows.count});
        }
    }
    return units;
  }
};

OrderedTable RandomTable(std::mt19937_64& random) {
  OrderedTable table;
  uint64_t row = 0;
  for (uint64_t split = 0, splits = 1 + random() % 6; split < splits; ++split) {
    const uint64_t rows = random() % 4 == 0 ? 0 : random() % 15;
    table.splits.push_back({row, rows});
    row += rows;
  }
  return table;
}

TEST(UnitOrder, GivesEachUnitInItsTurnWhateverCameBefore) {
  std::mt19937_64 random(TestSeed());
  for (int run = 0; run < 500; ++run) {
    const OrderedTable table = RandomTable(random);
    const auto ranks = static_cast<uint32_t>(1 + random() % 4);
    const auto rank = static_cast<uint32_t>(random() % ranks);
    const std::vector<RowSpan> units = table.UnitsOf(rank, ranks);
    // Some rows are there before: whole units, or the first rows of one.
    DeliveryLedger had(table.splits);
    std::vector<RowSpan> left;
    for (RowSpan unit : units) {
      if (random() % 3 != 0) {
        left.push_back(unit);
        continue;
      }
      RowSpan part = unit;
      part.count = part.rows = 1 + random() % unit.count;
      had.Settle({&part, 1});
      unit.first += part.count;
      unit.count = unit.rows = unit.count - part.count;
      if (unit.count > 0) left.push_back(unit);
    }
    EXPECT_NO_THROW(CheckInOrder(had, rank, ranks, kUnitRows));
    UnitOrder order(had, 2, kUnitRows, rank, ranks);
    std::vector<RowSpan> come = left, got;
    std::shuffle(come.begin(), come.end(), random);
    for (const RowSpan& span : come) {
      TensorBatch unit;
      unit.spans = {span};
      order.Add(std::move(unit));
      while (auto next = order.Next()) got.push_back(next->spans[0]);
    }
    EXPECT_EQ(order.waiting(), 0u);
    ASSERT_EQ(got.size(), left.size());
    for (size_t i = 0; i < got.size(); ++i) {
      EXPECT_EQ(got[i].epoch, left[i].epoch);
      EXPECT_EQ(got[i].first, left[i].first) << "unit " << i << " of rank " << rank << "/" << ranks;
    }
  }
}

TEST(UnitOrder, RowsOfAnotherDivisionAreRefused) {
  const std::vector<RowRange> splits = {{0, 8}, {8, 8}};
  DeliveryLedger had(splits);
  const RowSpan second{0, 0, 4, 4, 4};  // unit 1: of rank 1
  had.Settle({&second, 1});
  EXPECT_NO_THROW(CheckInOrder(had, 1, 2, kUnitRows));
  EXPECT_NO_THROW(CheckInOrder(had, 0, 1, kUnitRows));
  try {
    CheckInOrder(had, 0, 2, kUnitRows);
    ADD_FAILURE() << "rank 0 has a unit of rank 1";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::kUsage);
  }
}

}  // namespace
}  // namespace headrace::reader::service
