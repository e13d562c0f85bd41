// What a worker sends that ranks could not put together: it is refused, and no trainer ends by it.
#include "reader/service/unit_check.h"

#include <gtest/gtest.h>

#include <set>

#include "base/error.h"

namespace headrace::reader::service {
namespace {

TensorBatch UnitOfThree() {
  TensorBatch unit;
  unit.rows = 3;
  unit.first_row = 10;
  unit.dense_names = {"age"};
  unit.dense.resize(3);
  unit.sparse.keys = {"ids"};
  unit.sparse.rows = 3;
  unit.spans = {{0, 0, 10, 2, 2}, {0, 1, 12, 4, 1}};
  return unit;
}

void ExpectRefused(const TensorBatch& unit) {
  try {
    UnitCheck().FeaturesOf(unit);
    ADD_FAILURE();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::kBadData);
  }
}

TEST(UnitCheck, RefusesSpansThatAreNotThoseOfTheRows) {
  UnitCheck().FeaturesOf(UnitOfThree());
  TensorBatch none;
  none.spans = {{0, 0, 10, 5, 0}};
  UnitCheck().FeaturesOf(none);
  for (const std::vector<RowSpan>& spans : std::vector<std::vector<RowSpan>>{
           {},                  // no row is of any
           {{0, 0, 10, 2, 2}},  // one is of none
           {{0, 0, 10, 4, 4}},  // more than there are
           {{0, 0, 10, 2, 3}},  // more than the span has
           {{0, 0, 10, 3, UINT64_MAX}, {0, 0, 13, 9, 4}},
           {{0, 0, 11, 3, 3}},  // the first is before it
           {{0, 0, 9, 3, 3}},   // the last is behind it
           {{0, 0, UINT64_MAX, UINT64_MAX, 3}},
       }) {
    TensorBatch unit = UnitOfThree();
    unit.spans = spans;
    ExpectRefused(unit);
  }
  TensorBatch twice = UnitOfThree();
  twice.spans = {{0, 0, 10, 9, 3}};
  twice.row_ids.resize(3);
  for (size_t row = 0; row < 3; ++row) twice.row_ids[row] = 11;
  ExpectRefused(twice);
}

TEST(UnitCheck, TellsOtherFeaturesFromTheSame) {
  UnitCheck check;
  const std::optional<uint64_t> features = check.FeaturesOf(UnitOfThree());
  ASSERT_TRUE(features);
  EXPECT_EQ(check.FeaturesOf(UnitOfThree()), features);
  EXPECT_EQ(UnitCheck().FeaturesOf(UnitOfThree()), features) << "whatever came before";
  std::vector<TensorBatch> others;
  const auto other = [&](const auto& change) { change(&others.emplace_back(UnitOfThree())); };
  other([](TensorBatch* unit) { unit->dense_names = {"height"}; });
  other([](TensorBatch* unit) { unit->sparse.keys = {"names"}; });
  other([](TensorBatch* unit) { unit->weighted_sparse.keys = {"ids"}; });
  other([](TensorBatch* unit) { std::swap(unit->weighted_sparse, unit->sparse); });
  other([](TensorBatch* unit) { unit->sparse.keys = {}; });
  other([](TensorBatch* unit) { unit->labels.resize(3); });
  std::set<uint64_t> all = {*features};
  for (const TensorBatch& unit : others) {
    const std::optional<uint64_t> its = check.FeaturesOf(unit);
    ASSERT_TRUE(its);
    EXPECT_TRUE(all.insert(*its).second);
    EXPECT_EQ(check.FeaturesOf(UnitOfThree()), features) << "after others";
  }
  TensorBatch two = UnitOfThree(), swapped = UnitOfThree();
  two.sparse.keys = {"ids", "names"};
  swapped.sparse.keys = {"names", "ids"};
  EXPECT_NE(check.FeaturesOf(two), check.FeaturesOf(swapped)) << "ranks join them by their order";
  TensorBatch none;  // rows that a filter dropped come without names
  none.spans = {{0, 0, 10, 5, 0}};
  EXPECT_EQ(check.FeaturesOf(none), std::nullopt);
  EXPECT_EQ(check.FeaturesOf(UnitOfThree()), features);
}

}  // namespace
}  // namespace headrace::reader::service
