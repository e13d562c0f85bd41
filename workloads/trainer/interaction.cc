#include "workloads/trainer/interaction.h"

#include <cstring>

namespace headrace::workloads {

using reader::InteractionKind;

Interaction::Interaction(InteractionKind kind, size_t vectors, size_t width, const Kernels& kernels)
    : kind_(kind), vectors_(vectors), width_(width), kernels_(kernels) {
  if (kind_ != InteractionKind::kDot) return;
  transposed_.Resize(width_, vectors_);
  products_.Resize(vectors_, vectors_);
}

size_t Interaction::output() const {
  return kind_ == InteractionKind::kDot ? width_ + vectors_ * (vectors_ - 1) / 2
                                        : vectors_ * width_;
}

void Interaction::Forward(const float* in, size_t rows, Matrix* out) {
  const size_t step = Padded(width_);
  for (size_t r = 0; r < rows; ++r) {
    const float* row = in + r * in_row();
    float* to = out->row(r);
    if (kind_ == InteractionKind::kConcatenate) {
      for (size_t i = 0; i < vectors_; ++i)
        std::memcpy(to + i * width_, row + i * step, width_ * sizeof(float));
      continue;
    }
    for (size_t c = 0; c < width_; ++c) {
      float* line = transposed_.row(c);
      for (size_t i = 0; i < vectors_; ++i) line[i] = row[i * step + c];
    }
    kernels_.multiply(vectors_, products_.stride(), width_, row, step, 1, transposed_.data(),
                      transposed_.stride(), products_.data(), products_.stride(), false);
    std::memcpy(to, row, width_ * sizeof(float));
    to += width_;
    for (size_t i = 1; i < vectors_; to += i++)
      std::memcpy(to, products_.row(i), i * sizeof(float));
  }
}

void Interaction::Backward(const float* in, const Matrix& out_gradient, size_t rows,
                           float* in_gradient) {
  const size_t step = Padded(width_);
  for (size_t r = 0; r < rows; ++r) {
    const float* row = in + r * in_row();
    const float* from = out_gradient.row(r);
    float* to = in_gradient + r * in_row();
    if (kind_ == InteractionKind::kConcatenate) {
      for (size_t i = 0; i < vectors_; ++i)
        std::memcpy(to + i * step, from + i * width_, width_ * sizeof(float));
      continue;
    }
    const float* pairs = from + width_;
    for (size_t i = 0; i < vectors_; pairs += i++) {
      products_.row(i)[i] = 0;
      for (size_t j = 0; j < i; ++j) products_.row(i)[j] = products_.row(j)[i] = pairs[j];
    }
    kernels_.multiply(vectors_, step, vectors_, products_.data(), products_.stride(), 1, row, step,
                      to, step, false);
    for (size_t c = 0; c < width_; ++c) to[c] += from[c];
  }
}

}  // namespace headrace::workloads
