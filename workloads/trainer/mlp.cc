#include "workloads/trainer/mlp.h"

#include <cmath>

#include "base/check.h"
#include "workloads/distributions.h"

namespace headrace::workloads {
namespace {

float Uniform(uint64_t random) { return static_cast<float>(random >> 40) * 0x1p-24f * 2 - 1; }

}  // namespace

Mlp::Mlp(size_t input, const std::vector<uint32_t>& widths, bool relu_at_end, uint64_t seed,
         const Kernels& kernels)
    : kernels_(kernels) {
  HR_CHECK(input > 0 && !widths.empty(), "an MLP has an input and a layer");
  for (size_t i = 0; i < widths.size(); ++i) {
    Layer& layer = layers_.emplace_back();
    layer.relu = relu_at_end || i + 1 < widths.size();
    layer.weights.Resize(input, widths[i]);
    layer.weights_gradient.Resize(input, widths[i]);
    layer.bias.Resize(1, widths[i]);
    layer.bias_gradient.Resize(1, widths[i]);
    const float range = std::sqrt(6.0f / static_cast<float>(input + widths[i]));
    for (size_t r = 0; r < input; ++r)
      for (size_t c = 0; c < widths[i]; ++c)
        layer.weights.row(r)[c] = range * Uniform(Mix(Mix(seed, i), r * widths[i] + c));
    input = widths[i];
  }
}

void Mlp::Forward(const float* in, size_t in_row, size_t rows, float* out, size_t out_row) {
  in_ = in, in_row_ = in_row, out_ = out, out_row_ = out_row, rows_ = rows;
  for (size_t i = 0; i < layers_.size(); ++i) {
    Layer& layer = layers_[i];
    const bool last = i + 1 == layers_.size();
    if (!last) layer.out.Resize(rows, layer.weights.width());
    float* to = last ? out : layer.out.data();
    const size_t to_row = last ? out_row : layer.out.stride(), width = layer.weights.stride();
    kernels_.multiply(rows, width, layer.weights.rows(), in, in_row, 1, layer.weights.data(), width,
                      to, to_row, false);
    kernels_.add_bias(to, rows, width, to_row, layer.bias.data(), layer.relu);
    in = to, in_row = to_row;
  }
}

void Mlp::Transpose(Layer* layer) {
  const Matrix& from = layer->weights;
  layer->transposed.Resize(from.width(), from.rows());
  for (size_t r = 0; r < from.rows(); ++r)
    for (size_t c = 0; c < from.width(); ++c) layer->transposed.row(c)[r] = from.row(r)[c];
}

void Mlp::Backward(float* out_gradient, size_t out_row, float* in_gradient, size_t in_row) {
  float* gradient = out_gradient;
  size_t gradient_row = out_row;
  for (size_t i = layers_.size(); i-- > 0;) {
    Layer& layer = layers_[i];
    const bool last = i + 1 == layers_.size();
    const float* out = last ? out_ : layer.out.data();
    const size_t width = layer.weights.stride();
    if (layer.relu)
      kernels_.mask(gradient, gradient_row, out, last ? out_row_ : layer.out.stride(), rows_,
                    width);
    const float* in = i == 0 ? in_ : layers_[i - 1].out.data();
    const size_t from_row = i == 0 ? in_row_ : layers_[i - 1].out.stride();
    kernels_.multiply(layer.weights.rows(), width, rows_, in, 1, from_row, gradient, gradient_row,
                      layer.weights_gradient.data(), width, false);
    layer.bias_gradient.Clear();
    for (size_t r = 0; r < rows_; ++r)
      kernels_.add_scaled(layer.bias_gradient.data(), gradient + r * gradient_row, 1, width);
    if (i == 0 && in_gradient == nullptr) return;
    Transpose(&layer);
    if (i > 0) layers_[i - 1].gradient.Resize(rows_, layer.weights.rows());
    float* to = i == 0 ? in_gradient : layers_[i - 1].gradient.data();
    const size_t to_row = i == 0 ? in_row : layers_[i - 1].gradient.stride();
    kernels_.multiply(rows_, layer.transposed.stride(), layer.weights.width(), gradient,
                      gradient_row, 1, layer.transposed.data(), layer.transposed.stride(), to,
                      to_row, false);
    gradient = to, gradient_row = to_row;
  }
}

void Mlp::Update(float rate) {
  for (Layer& layer : layers_) {
    kernels_.add_scaled(layer.weights.data(), layer.weights_gradient.data(), -rate,
                        layer.weights.rows() * layer.weights.stride());
    kernels_.add_scaled(layer.bias.data(), layer.bias_gradient.data(), -rate, layer.bias.stride());
  }
}

std::vector<Mlp::Parameters> Mlp::parameters() {
  std::vector<Parameters> all;
  for (Layer& layer : layers_) {
    for (size_t r = 0; r < layer.weights.rows(); ++r)
      all.push_back({{layer.weights.row(r), layer.weights.width()},
                     {layer.weights_gradient.row(r), layer.weights.width()}});
    all.push_back({{layer.bias.row(0), layer.bias.width()},
                   {layer.bias_gradient.row(0), layer.bias.width()}});
  }
  return all;
}

}  // namespace headrace::workloads
