#include "reader/transforms/plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>

#include "base/error.h"
#include "reader/batch/tensorize.h"
#include "tests/reader/transforms/example_text.h"

namespace headrace::reader {
namespace {

using ::testing::HasSubstr;

std::vector<AvailableColumn> Columns() {
  return {{"dense:3", ColumnKind::kDense},     {"sparse:17", ColumnKind::kSparse},
          {"sparse:20", ColumnKind::kSparse},  {"weighted:4", ColumnKind::kWeightedSparse},
          {"timestamp", ColumnKind::kInteger}, {"label", ColumnKind::kFloat}};
}

TransformSpec PlanSpec(std::string op, std::vector<std::string> inputs, std::string output,
                       ParamMap params = {}) {
  TransformSpec spec;
  spec.op = std::move(op);
  spec.inputs = std::move(inputs);
  spec.output = std::move(output);
  spec.params = std::move(params);
  spec.file = "pipeline.toml";
  spec.line = 12;
  spec.column = 3;
  return spec;
}

const ParamMap kHash = {{"max", 100}};

TEST(TransformPlan, RefusesMistakesWithPlaceAndRemedy) {
  const struct {
    const char* name;
    TransformSpec spec;
    std::vector<std::string> expected;
  } cases[] = {
      {"operator",
       PlanSpec("sigrid_hsh", {"sparse:17"}, "", kHash),
       {"sigrid_hsh", "'sigrid_hash'?"}},
      {"parameter",
       PlanSpec("sigrid_hash", {"sparse:17"}, "", {{"max", 100}, {"slat", 3}}),
       {"no parameter 'slat'", "'salt'?"}},
      {"missing parameter", PlanSpec("sigrid_hash", {"sparse:17"}, ""), {"'max' is missing"}},
      {"value",
       PlanSpec("sigrid_hash", {"sparse:17"}, "", {{"max", 0}}),
       {"'max' must be positive, not 0"}},
      {"type",
       PlanSpec("sigrid_hash", {"sparse:17"}, "", {{"max", "many"}}),
       {"'max' must be an integer, not \"many\""}},
      {"borders",
       PlanSpec("bucketize", {"dense:3"}, "b", {{"borders", std::vector<double>{1, 1, 1}}}),
       {"'borders' must repeat a value at most twice"}},
      {"decreasing borders",
       PlanSpec("bucketize", {"dense:3"}, "b", {{"borders", std::vector<int64_t>{3, 2}}}),
       {"'borders' must be in increasing order, not [3, 2]"}},
      {"input",
       PlanSpec("sigrid_hash", {"sparse:71"}, "", kHash),
       {"no column 'sparse:71'", "'sparse:17'?"}},
      {"kind of input",
       PlanSpec("sigrid_hash", {"dense:3"}, "", kHash),
       {"'dense:3' is dense and must be sparse or weighted sparse"}},
      {"number of inputs", PlanSpec("cartesian", {"sparse:17"}, "x"), {"takes 2 inputs, not 1"}},
      {"no output", PlanSpec("cartesian", {"sparse:17", "sparse:20"}, ""), {"no output"}},
      {"output",
       PlanSpec("sigrid_hash", {"sparse:17"}, "sparse:20", kHash),
       {"'sparse:20' would overwrite"}},
      {"row transform",
       PlanSpec("sampling", {"sparse:17"}, "", {{"rate", 0.5}}),
       {"takes no inputs"}},
      {"rate", PlanSpec("sampling", {}, "", {{"rate", 1.5}}), {"'rate' must be between 0 and 1"}},
      {"float column", PlanSpec("get_local_hour", {"label"}, "h"), {"'label' is float column"}},
  };
  for (const auto& c : cases) {
    SCOPED_TRACE(c.name);
    try {
      TransformPlan({c.spec}, 1).ValidateAgainst(Columns());
      ADD_FAILURE() << "accepted";
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ExitCode::kUsage);
      EXPECT_THAT(error.what(), HasSubstr("pipeline.toml:12:3"));
      for (const std::string& text : c.expected) EXPECT_THAT(error.what(), HasSubstr(text));
    }
  }
}

TEST(TransformPlan, AnnouncesTheColumnsItLeaves) {
  const TransformPlan plan({PlanSpec("bucketize", {"dense:3"}, "dense:3", {{"borders", 1.5}}),
                            PlanSpec("sigrid_hash", {"dense:3"}, "", kHash),
                            PlanSpec("cartesian", {"dense:3", "sparse:17"}, "cross"),
                            PlanSpec("sampling", {}, "", {{"rate", 0.5}})},
                           1);
  std::string text;
  for (const AvailableColumn& column : plan.ValidateAgainst(Columns()))
    text += column.name + " " + ColumnKindName(column.kind) + ", ";
  EXPECT_EQ(text,
            "sparse:17 sparse, sparse:20 sparse, weighted:4 weighted sparse, timestamp integer "
            "column, label float column, dense:3 sparse, cross sparse, ");
  EXPECT_TRUE(plan.drops_rows(3));
  EXPECT_FALSE(plan.drops_rows(0));
  EXPECT_EQ(plan.name(2), "cartesian");
}

TEST(TransformPlan, ReplacesInPlaceOrAddsAtTheEnd) {
  FlatMapBatch batch =
      ParseExample(*TransformRegistry::Global().Find("cartesian"), "1 2 | - ; 3 | 4");
  const TransformPlan plan({PlanSpec("first_x", {"in0"}, "in0", {{"count", 1}}),
                            PlanSpec("first_x", {"in1"}, "new", {{"count", 0}})},
                           1);
  for (size_t i = 0; i < plan.size(); ++i) plan.Apply(i, batch);
  ASSERT_EQ(batch.sparse.size(), 3u);
  EXPECT_EQ(batch.sparse[0].name + " " + SparseText(batch.sparse[0]), "in0 1 | -");
  EXPECT_EQ(batch.sparse[1].name + " " + SparseText(batch.sparse[1]), "in1 3 | 4");
  EXPECT_EQ(batch.sparse[2].name + " " + SparseText(batch.sparse[2]), "new () | ()");
}

TEST(TransformPlan, NamesAColumnThatABatchLacks) {
  FlatMapBatch batch;
  const TransformPlan plan({PlanSpec("sigrid_hash", {"sparse:17"}, "", kHash)}, 1);
  try {
    plan.Apply(0, batch);
    FAIL();
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("the batch has no sparse or weighted sparse 'sparse:17'"));
  }
}

FlatMapBatch RowBatch(uint64_t first_row, uint64_t rows) {
  FlatMapBatch batch;
  batch.first_row = first_row;
  batch.rows = rows;
  ScalarColumn column;
  column.name = "number";
  for (uint64_t row = 0; row < rows; ++row)
    column.integers.push_back(static_cast<int64_t>(first_row + row));
  batch.scalars.push_back(std::move(column));
  return batch;
}

std::vector<int64_t> Sample(const TransformPlan& plan, uint64_t first_row, uint64_t rows) {
  FlatMapBatch batch = RowBatch(first_row, rows);
  for (size_t i = 0; i < plan.size(); ++i) plan.Apply(i, batch);
  Validate(batch);
  for (uint64_t row = 0; row < batch.rows; ++row)
    EXPECT_EQ(batch.scalars[0].integers[row], static_cast<int64_t>(batch.RowId(row)));
  return {batch.scalars[0].integers.begin(), batch.scalars[0].integers.end()};
}

TEST(Sampling, DoesNotDependOnWhereBatchesAreCut) {
  const TransformPlan plan({PlanSpec("sampling", {}, "", {{"rate", 0.3}}),
                            PlanSpec("sampling", {}, "", {{"rate", 0.5}})},
                           9);
  const std::vector<int64_t> whole = Sample(plan, 100, 5000);
  std::vector<int64_t> parts;
  for (uint64_t first = 100, step = 1; first < 5100; first += step, step = step % 300 + 7) {
    const std::vector<int64_t> part = Sample(plan, first, std::min<uint64_t>(step, 5100 - first));
    parts.insert(parts.end(), part.begin(), part.end());
  }
  EXPECT_EQ(parts, whole);
  // Two independent draws: 0.3 * 0.5 of 5000 = 750, standard deviation 25.
  EXPECT_NEAR(static_cast<double>(whole.size()), 750, 130);
}

TEST(Sampling, FollowsItsSeeds) {
  const auto plan = [](uint64_t pipeline_seed, int64_t seed) {
    return TransformPlan({PlanSpec("sampling", {}, "", {{"rate", 0.5}, {"seed", seed}})},
                         pipeline_seed);
  };
  EXPECT_EQ(Sample(plan(1, 0), 0, 500), Sample(plan(1, 0), 0, 500));
  EXPECT_NE(Sample(plan(1, 0), 0, 500), Sample(plan(1, 1), 0, 500));
  EXPECT_NE(Sample(plan(1, 0), 0, 500), Sample(plan(2, 0), 0, 500));
  EXPECT_EQ(Sample(TransformPlan({PlanSpec("sampling", {}, "", {{"rate", 1}})}, 1), 0, 500).size(),
            500u);
  EXPECT_EQ(Sample(TransformPlan({PlanSpec("sampling", {}, "", {{"rate", 0}})}, 1), 0, 500).size(),
            0u);
}

// Lists that hold their own row number and position, 0 to 19 ids long.
FlatMapBatch ListBatch(uint64_t first_row, uint64_t rows) {
  FlatMapBatch batch = RowBatch(first_row, rows);
  SparseColumn column;
  column.name = "in0";
  column.present.words.resize((rows + 63) / 64);
  column.offsets.push_back(0);
  for (uint64_t row = 0; row < rows; ++row) {
    column.present.words[row / 64] |= uint64_t{1} << (row % 64);
    ++column.present.count;
    for (uint64_t i = 0; i < (first_row + row) % 20; ++i)
      column.values.push_back(static_cast<int64_t>((first_row + row) * 100 + i));
    column.offsets.push_back(static_cast<uint32_t>(column.values.size()));
  }
  batch.sparse.push_back(std::move(column));
  return batch;
}

std::vector<int64_t> Crop(const TransformPlan& plan, uint64_t first_row, uint64_t rows) {
  FlatMapBatch batch = ListBatch(first_row, rows);
  for (size_t i = 0; i < plan.size(); ++i) plan.Apply(i, batch);
  Validate(batch);
  return {batch.sparse[0].values.begin(), batch.sparse[0].values.end()};
}

TransformPlan CropPlan(uint64_t pipeline_seed, int64_t seed) {
  return TransformPlan({PlanSpec("sampling", {}, "", {{"rate", 0.8}}),
                        PlanSpec("random_crop", {"in0"}, "in0", {{"count", 4}, {"seed", seed}})},
                       pipeline_seed);
}

TEST(RandomCrop, DependsNeitherOnBatchesNorOnThreads) {
  const TransformPlan plan = CropPlan(9, 0);
  const std::vector<int64_t> whole = Crop(plan, 100, 3000);
  std::vector<uint64_t> firsts{100};
  for (uint64_t step = 1; firsts.back() < 3100; step = step % 300 + 7)
    firsts.push_back(std::min<uint64_t>(firsts.back() + step, 3100));
  std::vector<std::vector<int64_t>> parts(firsts.size() - 1);
  std::vector<std::thread> threads;
  for (size_t t = 0; t < 4; ++t)
    threads.emplace_back([&, t] {
      for (size_t i = t; i < parts.size(); i += 4)
        parts[i] = Crop(plan, firsts[i], firsts[i + 1] - firsts[i]);
    });
  for (std::thread& thread : threads) thread.join();
  std::vector<int64_t> joined;
  for (const auto& part : parts) joined.insert(joined.end(), part.begin(), part.end());
  EXPECT_EQ(joined, whole);
}

TEST(RandomCrop, FollowsItsSeedsAndStartsEverywhereAlike) {
  EXPECT_EQ(Crop(CropPlan(1, 0), 0, 500), Crop(CropPlan(1, 0), 0, 500));
  EXPECT_NE(Crop(CropPlan(1, 0), 0, 500), Crop(CropPlan(1, 1), 0, 500));
  EXPECT_NE(Crop(CropPlan(1, 0), 0, 500), Crop(CropPlan(2, 0), 0, 500));
  const TransformPlan plan({PlanSpec("random_crop", {"in0"}, "in0", {{"count", 4}})}, 3);
  const FlatMapBatch before = ListBatch(0, 20'000);
  FlatMapBatch after = before.Clone();
  plan.Apply(0, after);
  const SparseColumn& lists = after.sparse[0];
  std::vector<int> starts(16);  // of the thousand lists of 19 ids
  for (uint64_t row = 0; row < after.rows; ++row) {
    const uint32_t length = before.sparse[0].offsets[row + 1] - before.sparse[0].offsets[row];
    ASSERT_EQ(lists.offsets[row + 1] - lists.offsets[row], std::min(length, 4u));
    for (uint32_t i = lists.offsets[row] + 1; i < lists.offsets[row + 1]; ++i)
      ASSERT_EQ(lists.values[i], lists.values[i - 1] + 1);
    if (length == 19) ++starts[static_cast<size_t>(lists.values[lists.offsets[row]] % 100)];
  }
  // 1000 / 16 = 62.5 each, standard deviation 7.7.
  for (const int count : starts) EXPECT_NEAR(count, 62.5, 35);
}

TEST(Scale, RefusesParametersOfTheOtherModeAndEmptyRanges) {
  const auto refusal = [](ParamMap params) -> std::string {
    try {
      TransformPlan({PlanSpec("scale", {"dense:3"}, "", std::move(params))}, 1);
      return "accepted";
    } catch (const Error& error) {
      return error.what();
    }
  };
  EXPECT_THAT(refusal({{"mode", "minmax"}}), HasSubstr("must be min_max or z_score"));
  EXPECT_THAT(refusal({{"mode", "min_max"}, {"low", 1}, {"high", 1}}), HasSubstr("exceed 'low'"));
  EXPECT_THAT(refusal({{"mode", "z_score"}, {"mean", 1}, {"deviation", 0}}),
              HasSubstr("'deviation' must be positive"));
  EXPECT_THAT(refusal({{"mode", "z_score"}, {"mean", 1}, {"deviation", 1}, {"low", 0}}),
              HasSubstr("'low' must be left out"));
}

TEST(TransformPlan, RunsOnManyThreads) {
  const TransformPlan plan(
      {PlanSpec("sigrid_hash", {"in0"}, "", kHash),
       PlanSpec("id_list_transform", {"in0", "in1"}, "both", {{"mode", "union"}}),
       PlanSpec("sampling", {}, "", {{"rate", 0.5}})},
      3);
  const TransformEntry& entry = *TransformRegistry::Global().Find("cartesian");
  const auto run = [&](uint64_t first_row) {
    FlatMapBatch batch = ParseExample(entry, "1 2 | - | 3 | 4 5 | 6 ; 60 | 7 | () | 8 9 | 10");
    batch.first_row = first_row;
    for (size_t i = 0; i < plan.size(); ++i) plan.Apply(i, batch);
    std::string text = OutputText(*TransformRegistry::Global().Find("sampling"), batch);
    for (const SparseColumn& column : batch.sparse) text += "; " + SparseText(column);
    return text;
  };
  std::vector<std::string> expected(50);
  for (uint64_t i = 0; i < expected.size(); ++i) expected[i] = run(i);
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&] {
      for (uint64_t i = 0; i < expected.size(); ++i) EXPECT_EQ(run(i), expected[i]);
    });
  for (std::thread& thread : threads) thread.join();
}

}  // namespace
}  // namespace headrace::reader
