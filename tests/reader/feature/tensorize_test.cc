#include "reader/batch/tensorize.h"

#include <gtest/gtest.h>

#include <random>

#include "base/error.h"

namespace headrace::reader {
namespace {

PresenceBits Bits(const std::vector<int>& rows) {
  PresenceBits bits;
  bits.words.resize((rows.size() + 63) / 64);
  for (size_t row = 0; row < rows.size(); ++row) {
    bits.words[row / 64] |= static_cast<uint64_t>(rows[row]) << (row % 64);
    bits.count += static_cast<uint64_t>(rows[row]);
  }
  return bits;
}

// Three rows: sparse [7,8], absent, []; weighted {5: .5}, {}, absent; dense 0.5, absent, 2; label 1
// 0 1.
FlatMapBatch Example() {
  FlatMapBatch batch;
  batch.rows = 3;
  batch.first_row = 40;
  batch.dense.push_back({"dense:1", Bits({1, 0, 1}), {0.5f, 0, 2}});
  batch.dense.push_back({"dense:2", Bits({0, 1, 0}), {0, -1, 0}});
  batch.sparse.push_back({"sparse:17", Bits({1, 0, 1}), {0, 2, 2, 2}, {7, 8}, {}, false});
  batch.sparse.push_back({"weighted:4", Bits({1, 1, 0}), {0, 1, 1, 1}, {5}, {0.5f}, true});
  batch.scalars.push_back({"label", true, {}, {1, 0, 1}});
  batch.scalars.push_back({"id", false, {10, 11, 12}, {}});
  return batch;
}

TEST(Tensorize, GivesRowMajorDenseAndTwoJaggedTensors) {
  const FlatMapBatch batch = Example();
  Validate(batch);
  const TensorBatch tensors = Tensorize(batch, "label");
  EXPECT_EQ(tensors.rows, 3u);
  EXPECT_EQ(tensors.dense_names, (std::vector<std::string>{"dense:1", "dense:2"}));
  EXPECT_EQ(tensors.dense, (std::vector<float>{0.5f, 0, 0, -1, 2, 0}));
  EXPECT_EQ(tensors.labels, (std::vector<float>{1, 0, 1}));
  EXPECT_EQ(tensors.row_ids, (std::vector<uint64_t>{40, 41, 42}));
  EXPECT_EQ(tensors.sparse.keys, (std::vector<std::string>{"sparse:17"}));
  EXPECT_EQ(tensors.sparse.lengths, (std::vector<int32_t>{2, 0, 0}));
  EXPECT_EQ(tensors.sparse.offsets, (std::vector<int64_t>{0, 2, 2, 2}));
  EXPECT_EQ(tensors.sparse.values, (std::vector<int64_t>{7, 8}));
  EXPECT_TRUE(tensors.sparse.weights.empty());
  EXPECT_EQ(tensors.weighted_sparse.keys, (std::vector<std::string>{"weighted:4"}));
  EXPECT_EQ(tensors.weighted_sparse.weights, (std::vector<float>{0.5f}));
  Validate(tensors.sparse);
  Validate(tensors.weighted_sparse);
  EXPECT_EQ(Tensorize(batch, "id").labels, (std::vector<float>{10, 11, 12}));
  EXPECT_TRUE(Tensorize(batch, "").labels.empty());
  EXPECT_THROW(Tensorize(batch, "nothing"), Error);
}

TEST(AssembleKjt, IsFeatureMajorAsInTheHeader) {
  const SparseColumn a{"a", Bits({1, 1}), {0, 2, 2}, {1, 2}, {}, false},
      b{"b", Bits({1, 1}), {0, 1, 4}, {3, 4, 5, 6}, {}, false};
  const SparseColumn* columns[] = {&a, &b};
  const KeyedJaggedTensor tensor = AssembleKjt(columns, 2, false);
  EXPECT_EQ(tensor.values, (std::vector<int64_t>{1, 2, 3, 4, 5, 6}));
  EXPECT_EQ(tensor.lengths, (std::vector<int32_t>{2, 0, 1, 3}));
  EXPECT_EQ(tensor.offsets, (std::vector<int64_t>{0, 2, 2, 3, 6}));
  Validate(tensor);
}

TEST(AppendRows, CuttingAnywhereAndJoiningGivesTheWhole) {
  std::mt19937_64 random(7);
  FlatMapBatch whole;
  whole.rows = 200;
  DenseColumn dense{"d:1", {}, {}};
  SparseColumn sparse{"s:1", {}, {0}, {}, {}, true};
  std::vector<int> dense_rows, sparse_rows;
  for (uint64_t row = 0; row < whole.rows; ++row) {
    dense_rows.push_back(random() % 2);
    sparse_rows.push_back(random() % 3 != 0);
    dense.values.push_back(dense_rows.back() ? static_cast<float>(row) : 0.0f);
    for (uint64_t i = sparse_rows.back() ? random() % 5 : 0; i > 0; --i) {
      sparse.values.push_back(static_cast<int64_t>(random()));
      sparse.weights.push_back(static_cast<float>(i));
    }
    sparse.offsets.push_back(static_cast<uint32_t>(sparse.values.size()));
  }
  dense.present = Bits(dense_rows);
  sparse.present = Bits(sparse_rows);
  whole.dense.push_back(std::move(dense));
  whole.sparse.push_back(std::move(sparse));
  whole.scalars.push_back({"id", false, std::vector<int64_t>(200, 9), {}});
  Validate(whole);
  for (int trial = 0; trial < 50; ++trial) {
    FlatMapBatch joined;
    for (uint64_t row = 0; row < whole.rows;) {
      const uint64_t rows = std::min<uint64_t>(whole.rows - row, random() % 70);
      AppendRows(&joined, whole, row, rows);
      row += rows;
    }
    Validate(joined);
    EXPECT_EQ(joined.rows, whole.rows);
    EXPECT_EQ(joined.dense[0].values, whole.dense[0].values);
    EXPECT_EQ(joined.dense[0].present.words, whole.dense[0].present.words);
    EXPECT_EQ(joined.sparse[0].offsets, whole.sparse[0].offsets);
    EXPECT_EQ(joined.sparse[0].values, whole.sparse[0].values);
    EXPECT_EQ(joined.sparse[0].weights, whole.sparse[0].weights);
    EXPECT_TRUE(joined.sparse[0].weighted);
    EXPECT_EQ(joined.scalars[0].integers, whole.scalars[0].integers);
  }
}

TEST(TransposeColumns, EveryShape) {
  for (const uint64_t rows : {0, 1, 15, 16, 17, 100}) {
    for (const size_t num_columns : {0, 1, 15, 16, 17, 33}) {
      std::vector<std::vector<float>> columns(num_columns, std::vector<float>(rows));
      std::vector<const float*> pointers;
      for (size_t c = 0; c < num_columns; ++c) {
        for (uint64_t row = 0; row < rows; ++row)
          columns[c][row] = static_cast<float>(1000 * c + row);
        pointers.push_back(columns[c].data());
      }
      for (const InstructionSet set : {InstructionSet::kScalar, BestInstructionSet()}) {
        std::vector<float> out(rows * num_columns, -1.0f);
        TransposeColumns(pointers, rows, out.data(), set);
        for (uint64_t row = 0; row < rows; ++row) {
          for (size_t c = 0; c < num_columns; ++c)
            ASSERT_EQ(out[row * num_columns + c], columns[c][row]);
        }
      }
    }
  }
}

TEST(Validate, NamesTheBrokenColumn) {
  FlatMapBatch batch = Example();
  batch.sparse[0].offsets[1] = 9;
  try {
    Validate(batch);
    FAIL() << "accepted";
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("sparse:17"), std::string::npos);
  }
}

}  // namespace
}  // namespace headrace::reader
