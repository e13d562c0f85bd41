// What came out of a delivery is what went in.
#pragma once
#include <gtest/gtest.h>

#include <algorithm>

#include "reader/batch/tensor_batch.h"

namespace headrace::reader {

template <typename T>
inline void ExpectSame(const T& a, const T& b, const char* what) {
  ASSERT_EQ(a.size(), b.size()) << what;
  EXPECT_TRUE(std::equal(a.begin(), a.end(), b.begin())) << what;
}

inline void ExpectSame(const KeyedJaggedTensor& a, const KeyedJaggedTensor& b) {
  EXPECT_EQ(a.keys, b.keys);
  EXPECT_EQ(a.rows, b.rows);
  ExpectSame(a.lengths, b.lengths, "lengths");
  ExpectSame(a.offsets, b.offsets, "offsets");
  ExpectSame(a.values, b.values, "values");
  ExpectSame(a.weights, b.weights, "weights");
}

inline void ExpectSame(const TensorBatch& a, const TensorBatch& b) {
  EXPECT_EQ(a.rows, b.rows);
  EXPECT_EQ(a.first_row, b.first_row);
  EXPECT_EQ(a.dense_names, b.dense_names);
  ExpectSame(a.dense, b.dense, "dense");
  ExpectSame(a.labels, b.labels, "labels");
  ExpectSame(a.row_ids, b.row_ids, "row ids");
  ExpectSame(a.sparse, b.sparse);
  ExpectSame(a.weighted_sparse, b.weighted_sparse);
  ASSERT_EQ(a.groups.size(), b.groups.size());
  for (size_t g = 0; g < a.groups.size(); ++g) {
    EXPECT_EQ(a.groups[g].name, b.groups[g].name);
    EXPECT_EQ(a.groups[g].weighted, b.groups[g].weighted);
    EXPECT_EQ(a.groups[g].places, b.groups[g].places);
    ExpectSame(a.groups[g].unique, b.groups[g].unique);
    ExpectSame(a.groups[g].inverse, b.groups[g].inverse, "inverse");
    EXPECT_NO_THROW(Validate(b.groups[g]));
  }
  EXPECT_EQ(a.spans, b.spans);
}

}  // namespace headrace::reader
