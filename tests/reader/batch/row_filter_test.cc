// Rows pass by what their values are, in the type in which they are stored.
#include "reader/batch/row_filter.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace headrace::reader {
namespace {

enum Side { kMost, kLeast, kOneOf };

RowFilter Filter(Side side, long double bound) {
  RowFilter filter;
  filter.name = "label";
  filter.is_column = true;
  if (side == kMost) filter.max = bound;
  if (side == kLeast) filter.min = bound;
  if (side == kOneOf) filter.in = {bound};
  return filter;
}

TEST(RowFilter, AStoredFloatPassesTheBoundItWasWrittenWith) {
  for (const double bound : {0.1, 0.3, 1.1, 16777217.0, -0.7}) {
    const float stored = static_cast<float>(bound);
    for (const Side side : {kMost, kLeast, kOneOf})
      EXPECT_TRUE(Filter(side, bound).Passes(stored)) << bound;
    EXPECT_FALSE(Filter(kMost, bound).Passes(std::nextafterf(stored, 1e30f)));
    EXPECT_FALSE(Filter(kLeast, bound).Passes(std::nextafterf(stored, -1e30f)));
    EXPECT_FALSE(Filter(kOneOf, bound).Passes(std::nextafterf(stored, 0.0f)));
  }
  EXPECT_FALSE(Filter(kMost, 1).Passes(std::numeric_limits<float>::quiet_NaN()));
}

TEST(RowFilter, BoundsThatNoFloatReachesStayWhatTheyAre) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  constexpr float kMax = std::numeric_limits<float>::max();
  constexpr float kTiny = std::numeric_limits<float>::denorm_min();
  EXPECT_FALSE(Filter(kLeast, 1e-50L).Passes(0.0f));
  EXPECT_TRUE(Filter(kLeast, 1e-50L).Passes(kTiny));
  EXPECT_FALSE(Filter(kMost, -1e-50L).Passes(0.0f));
  EXPECT_TRUE(Filter(kMost, -1e-50L).Passes(-kTiny));
  EXPECT_FALSE(Filter(kOneOf, 1e-50L).Passes(0.0f));
  EXPECT_FALSE(Filter(kMost, 1e39L).Passes(kInfinity));
  EXPECT_TRUE(Filter(kMost, 1e39L).Passes(kMax));
  EXPECT_FALSE(Filter(kLeast, -1e39L).Passes(-kInfinity));
  EXPECT_FALSE(Filter(kOneOf, 1e39L).Passes(kInfinity));
  // Those that are meant do pass.
  EXPECT_TRUE(Filter(kLeast, 0).Passes(0.0f));
  EXPECT_TRUE(Filter(kLeast, kInfinity).Passes(kInfinity));
  EXPECT_TRUE(Filter(kLeast, 3.4028235e38L).Passes(kMax));  // a little more, and rounds to it
}

TEST(RowFilter, IntegersAreComparedExactly) {
  constexpr int64_t kOdd = (int64_t{1} << 53) + 1;
  const RowFilter filter = Filter(kOneOf, static_cast<long double>(kOdd));
  EXPECT_TRUE(filter.Passes(kOdd));
  EXPECT_FALSE(filter.Passes(kOdd - 1));
}

TEST(RowFilter, AppliesToFeaturesAndPlainColumns) {
  FlatMapBatch batch;
  batch.rows = 3;
  ScalarColumn& label = batch.scalars.emplace_back();
  label.name = "label";
  label.is_float = true;
  label.floats = {0.1f, 0.2f, 0.3f};
  const std::vector<RowFilter> filters = {Filter(kMost, 0.2)};
  std::vector<uint8_t> keep(3, 1);
  ApplyFilters(filters, batch, keep);
  EXPECT_EQ(keep, (std::vector<uint8_t>{1, 1, 0}));
}

}  // namespace
}  // namespace headrace::reader
