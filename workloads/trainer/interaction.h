// Interaction: computes the input of a DLRM's top layers from a row's feature vectors (Naumov et
// al. 2019, arXiv 1906.00091, section 2.1).
//
//   vectors of a row  v0 (bottom layers), v1, v2 (pooled embeddings)
//   dot               v0, then v1.v0, v2.v0, v2.v1
//   concatenate       v0, v1, v2
#pragma once
#include <cstddef>

#include "reader/pipeline/spec.h"
#include "workloads/trainer/matrix.h"

namespace headrace::workloads {

class Interaction {
 public:
  // `vectors` of `width` floats a row, v0 among them.
  Interaction(reader::InteractionKind kind, size_t vectors, size_t width, const Kernels& kernels);

  size_t output() const;  // floats a row
  // Floats from one row's vectors to the next; vector i of a row stands i * Padded(width) behind
  // its first.
  size_t in_row() const { return vectors_ * Padded(width_); }

  // out[rows, output()] from in[rows, in_row()]. The padding of `out` has to be zero.
  void Forward(const float* in, size_t rows, Matrix* out);
  // d loss / d in from d loss / d out and the same `in`.
  void Backward(const float* in, const Matrix& out_gradient, size_t rows, float* in_gradient);

 private:
  reader::InteractionKind kind_;
  size_t vectors_, width_;
  const Kernels& kernels_;
  Matrix transposed_, products_;  // of one row
};

}  // namespace headrace::workloads
