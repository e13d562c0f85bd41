// Mlp: fully connected layers with ReLU between them, forward, backward and gradient descent.
//
//   x[rows, input] -> relu(x w0 + b0) -> ... -> x w_last + b_last, with ReLU at the end if asked
//   for
#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "workloads/trainer/matrix.h"

namespace headrace::workloads {

class Mlp {
 public:
  // `widths` of the layers' outputs, at least one. Weights are drawn from `seed`: uniform, of
  // variance 2 / (input + output) (Glorot and Bengio 2010).
  Mlp(size_t input, const std::vector<uint32_t>& widths, bool relu_at_end, uint64_t seed,
      const Kernels& kernels);

  size_t input() const { return layers_.front().weights.rows(); }
  size_t output() const { return layers_.back().weights.width(); }

  // out[rows, output] from in[rows, input], rows `in_row` and `out_row` floats apart and padded to
  // kLanes with zeros. Both stay as they are until Backward.
  void Forward(const float* in, size_t in_row, size_t rows, float* out, size_t out_row);
  // From d loss / d out, which it changes, to the gradients of weights and biases, and to
  // d loss / d in[rows, input] unless null.
  void Backward(float* out_gradient, size_t out_row, float* in_gradient, size_t in_row);
  // w -= rate * d loss / d w, with the gradients of the last Backward.
  void Update(float rate);

  // Every parameter and its gradient, for checks by finite differences.
  struct Parameters {
    std::span<float> values;
    std::span<const float> gradients;
  };
  std::vector<Parameters> parameters();

 private:
  struct Layer {
    Matrix weights, weights_gradient;  // [input, output]
    Matrix transposed;                 // weights of the last Forward, [output, input]
    Matrix bias, bias_gradient;        // one row
    Matrix out, gradient;              // of all layers but the last
    bool relu;
  };
  void Transpose(Layer* layer);

  const Kernels& kernels_;
  std::vector<Layer> layers_;
  // Input, output and sizes of the last Forward.
  const float *in_ = nullptr, *out_ = nullptr;
  size_t in_row_ = 0, out_row_ = 0, rows_ = 0;
};

}  // namespace headrace::workloads
