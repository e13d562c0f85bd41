// Matrix: rows of floats, each padded with zeros to a multiple of kLanes. Memory only grows, so
// that steps of one shape allocate once.
#pragma once
#include <algorithm>
#include <vector>

#include "workloads/trainer/kernels.h"

namespace headrace::workloads {

class Matrix {
 public:
  Matrix() = default;
  Matrix(size_t rows, size_t width) { Resize(rows, width); }

  // What it held is lost; the padding is zero, the rest is of unspecified value.
  void Resize(size_t rows, size_t width) {
    const bool same = width == width_;
    rows_ = rows;
    width_ = width;
    stride_ = Padded(width);
    if (data_.size() < rows * stride_) {
      data_.assign(rows * stride_, 0.0f);
    } else if (!same) {
      std::fill(data_.begin(), data_.end(), 0.0f);
    }
  }
  void Clear() { std::fill_n(data_.begin(), rows_ * stride_, 0.0f); }

  size_t rows() const { return rows_; }
  size_t width() const { return width_; }
  size_t stride() const { return stride_; }  // floats from row to row
  float* row(size_t r) { return data_.data() + r * stride_; }
  const float* row(size_t r) const { return data_.data() + r * stride_; }
  float* data() { return data_.data(); }
  const float* data() const { return data_.data(); }

 private:
  size_t rows_ = 0, width_ = 0, stride_ = 0;
  std::vector<float> data_;
};

}  // namespace headrace::workloads
