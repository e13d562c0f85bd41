// EmbeddingBag: one feature's table of vectors, and the sum of a list's vectors.
//
// The lists may be those of a deduplicated feature: then pooling and the step of gradient descent
// run over its unique lists, and rows reach their list through `inverse`.
//
//   lists [7,8] [9], inverse 0 0 1 0   pooled: t7+t8, t9      rows: t7+t8, t7+t8, t9, t7+t8
#pragma once
#include <cstdint>
#include <vector>

#include "workloads/trainer/matrix.h"

namespace headrace::workloads {

// The lists of one feature in a batch: views of a KeyedJaggedTensor.
struct Bags {
  const int64_t* offsets = nullptr;  // lists + 1, into places and weights
  const uint32_t* places = nullptr;  // rows of the table
  const float* weights = nullptr;    // null: all 1
  size_t lists = 0;
  const int32_t* inverse = nullptr;  // null: list r is that of row r
};

class EmbeddingBag {
 public:
  // Values uniform in +-1/sqrt(rows), as the published model's.
  EmbeddingBag(uint64_t rows, size_t width, uint64_t seed, const Kernels& kernels);

  uint64_t rows() const { return table_.rows(); }
  // Row r's sum to out + r * out_row, Padded(width) floats each.
  void Forward(const Bags& bags, size_t rows, float* out, size_t out_row);
  // table -= rate * d loss / d table, from d loss / d out of the same rows.
  void Update(const Bags& bags, size_t rows, const float* gradient, size_t gradient_row,
              float rate);

  Matrix* table() { return &table_; }

 private:
  const Kernels& kernels_;
  Matrix table_;
  Matrix unique_;  // of unique lists: sums forward, gradients backward
};

}  // namespace headrace::workloads
