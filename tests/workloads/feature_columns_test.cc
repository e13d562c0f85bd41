#include "workloads/feature_columns.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <set>
#include <unordered_map>

namespace headrace::workloads {
namespace {

using reader::FeatureKind;

struct Totals {
  double rows = 0, present = 0, lists = 0, ids = 0;
  double coverage_sum = 0, features = 0;
};

Totals Measure(const WorkloadSpec& spec, FeatureKind first, FeatureKind last) {
  const auto tables = std::make_shared<const DrawTables>(spec);
  const SessionRows sessions = MakeSessionRows(spec, 0, spec.rows);
  Totals totals;
  Owed owed;
  FeatureBlock block;
  for (const Feature& feature : MakeFeatures(spec)) {
    if (feature.kind < first || feature.kind > last) continue;
    FeatureColumns columns(feature, tables);
    columns.StartPartition(sessions, &owed);
    columns.Fill(sessions, 0, spec.rows, &block);
    double present = 0;
    for (const uint64_t word : block.present) present += std::popcount(word);
    totals.coverage_sum += present / static_cast<double>(spec.rows);
    totals.features += 1;
    totals.present += present;
    totals.lists += static_cast<double>(block.lengths.size());
    totals.ids += static_cast<double>(block.integers.size());
  }
  return totals;
}

TEST(FeatureColumns, CoverageAndLengthHoldForSmallTables) {
  for (const char* model : {"rm1", "rm2", "rm3"}) {
    for (const double fraction : {0.0625, 0.02}) {
      for (const uint64_t rows : {1000, 4000}) {
        SCOPED_TRACE(testing::Message() << model << " " << fraction << " " << rows << " rows");
        const WorkloadSpec spec = ForModel(model, fraction, rows, 3);
        const Totals dense = Measure(spec, FeatureKind::kDense, FeatureKind::kDense);
        EXPECT_NEAR(dense.coverage_sum / dense.features, spec.coverage_mean, 0.01);
        const Totals sparse = Measure(spec, FeatureKind::kSparse, FeatureKind::kWeightedSparse);
        EXPECT_NEAR(sparse.coverage_sum / sparse.features, spec.coverage_mean, 0.01);
        EXPECT_NEAR(sparse.ids / sparse.lists / spec.list_length_mean, 1, 0.02);
      }
    }
  }
}

TEST(FeatureColumns, ValuesDoNotDependOnBlocks) {
  const WorkloadSpec spec = ForModel("rm1", 0.005, 500, 1);
  const auto tables = std::make_shared<const DrawTables>(spec);
  const SessionRows sessions = MakeSessionRows(spec, 2, spec.rows);
  for (const Feature& feature : MakeFeatures(spec)) {
    FeatureColumns columns(feature, tables);
    Owed owed;
    columns.StartPartition(sessions, &owed);
    FeatureBlock whole, part;
    columns.Fill(sessions, 0, 500, &whole);
    std::vector<int64_t> integers;
    std::vector<float> floats;
    for (uint64_t row = 0; row < 500; row += 100) {
      columns.Fill(sessions, row, 100, &part);
      integers.insert(integers.end(), part.integers.begin(), part.integers.end());
      floats.insert(floats.end(), part.floats.begin(), part.floats.end());
    }
    EXPECT_EQ(integers, whole.integers) << FeatureColumn(feature);
    EXPECT_EQ(floats, whole.floats) << FeatureColumn(feature);
  }
}

TEST(FeatureColumns, KeysOfWeightedListsAreDistinct) {
  WorkloadSpec spec = ForModel("rm1", 0.0625, 300, 1);
  const auto tables = std::make_shared<const DrawTables>(spec);
  const SessionRows sessions = MakeSessionRows(spec, 0, spec.rows);
  FeatureBlock block;
  for (Feature feature : MakeFeatures(spec)) {
    if (feature.kind != FeatureKind::kWeightedSparse) continue;
    feature.ids = IdClass::kSmall;
    FeatureColumns columns(feature, tables);
    Owed owed;
    columns.StartPartition(sessions, &owed);
    columns.Fill(sessions, 0, spec.rows, &block);
    ASSERT_EQ(block.floats.size(), block.integers.size());
    auto id = block.integers.begin();
    for (const uint32_t length : block.lengths) {
      ASSERT_EQ(std::set<int64_t>(id, id + length).size(), length);
      id += length;
    }
  }
}

// Share of rows that repeat the value of the same session's previous row.
TEST(FeatureColumns, ValuesRepeatWithinSessionsAsAsked) {
  WorkloadSpec spec = ForModel("rm1", 0.0625, 20'000, 1);
  spec.clustered = true;
  const auto tables = std::make_shared<const DrawTables>(spec);
  const SessionRows sessions = MakeSessionRows(spec, 0, spec.rows);
  for (const double repeat : {0.0, 0.9, 0.99}) {
    Feature feature = MakeFeatures(spec).front();
    feature.coverage = 1;
    feature.repeat = repeat;
    feature.shape = QuantileTable::Shape::kNormal;
    FeatureColumns columns(feature, tables);
    Owed owed;
    columns.StartPartition(sessions, &owed);
    FeatureBlock block;
    columns.Fill(sessions, 0, spec.rows, &block);
    ASSERT_EQ(block.floats.size(), spec.rows);
    double pairs = 0, same = 0;
    for (uint64_t row = 1; row < spec.rows; ++row) {
      if (sessions.rows[row].session != sessions.rows[row - 1].session) continue;
      ++pairs;
      same += block.floats[row] == block.floats[row - 1] ? 1 : 0;
    }
    EXPECT_NEAR(same / pairs, repeat, 0.01) << repeat;
  }
}

TEST(SessionRows, SessionsHaveTheMeanSizeAndRowsTimeOrder) {
  WorkloadSpec spec = ForModel("rm1", 0.0625, 50'000, 1);
  const SessionRows sessions = MakeSessionRows(spec, 0, spec.rows);
  EXPECT_EQ(sessions.rows.size(), spec.rows);
  EXPECT_NEAR(50'000.0 / static_cast<double>(sessions.session_sizes.size()), 16.5, 0.05);
  std::vector<uint32_t> seen(sessions.session_sizes.size(), 0);
  for (size_t row = 0; row < sessions.rows.size(); ++row) {
    EXPECT_EQ(sessions.rows[row].visit, seen[sessions.rows[row].session]++);
    if (row > 0) {
      EXPECT_GE(sessions.rows[row].time, sessions.rows[row - 1].time);
    }
  }
  EXPECT_EQ(seen, sessions.session_sizes);
  // Logged in time order, a batch holds few rows of one session; clustered, nearly all of it.
  const auto per_session = [](const SessionRows& rows) {
    std::unordered_map<uint32_t, uint32_t> count;
    for (size_t row = 10'000; row < 14'096; ++row) ++count[rows.rows[row].session];
    return 4096.0 / static_cast<double>(count.size());
  };
  EXPECT_LT(per_session(sessions), 2.5);
  spec.clustered = true;
  EXPECT_GT(per_session(MakeSessionRows(spec, 0, spec.rows)), 14);
}

}  // namespace
}  // namespace headrace::workloads
