#include "workloads/trainer/embedding_bag.h"

#include <cmath>
#include <cstring>

#include "workloads/distributions.h"

namespace headrace::workloads {

EmbeddingBag::EmbeddingBag(uint64_t rows, size_t width, uint64_t seed, const Kernels& kernels)
    : kernels_(kernels), table_(rows, width) {
  const float range = 1 / std::sqrt(static_cast<float>(rows));
  for (uint64_t r = 0; r < rows; ++r) {
    float* row = table_.row(r);
    const uint64_t key = Mix(seed, r);
    for (size_t c = 0; c < width; ++c)
      row[c] = range * (static_cast<float>(Mix(key, c) >> 40) * 0x1p-23f - 1);
  }
}

void EmbeddingBag::Forward(const Bags& bags, size_t rows, float* out, size_t out_row) {
  const size_t width = table_.stride();
  if (bags.inverse == nullptr) {
    kernels_.pool(table_.data(), width, bags.places, bags.weights, bags.offsets, rows, out,
                  out_row);
    return;
  }
  unique_.Resize(bags.lists, table_.width());
  kernels_.pool(table_.data(), width, bags.places, bags.weights, bags.offsets, bags.lists,
                unique_.data(), width);
  for (size_t r = 0; r < rows; ++r)
    std::memcpy(out + r * out_row, unique_.row(static_cast<size_t>(bags.inverse[r])),
                width * sizeof(float));
}

void EmbeddingBag::Update(const Bags& bags, size_t rows, const float* gradient, size_t gradient_row,
                          float rate) {
  const size_t width = table_.stride();
  if (bags.inverse != nullptr) {
    unique_.Resize(bags.lists, table_.width());
    unique_.Clear();
    for (size_t r = 0; r < rows; ++r)
      kernels_.add_scaled(unique_.row(static_cast<size_t>(bags.inverse[r])),
                          gradient + r * gradient_row, 1, width);
    gradient = unique_.data(), gradient_row = width, rows = bags.lists;
  }
  kernels_.scatter(table_.data(), width, bags.places, bags.weights, bags.offsets, rows, gradient,
                   gradient_row, -rate);
}

}  // namespace headrace::workloads
