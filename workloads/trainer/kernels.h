// The inner loops of the reference trainer, one version for each instruction set. All widths are
// multiples of kLanes: callers pad rows with zeros, so no loop has a tail. Rows may begin at any
// address.
#pragma once
#include <cstddef>
#include <cstdint>

namespace headrace {
enum class InstructionSet : uint8_t;
InstructionSet BestInstructionSet();
}  // namespace headrace

namespace headrace::workloads {

constexpr size_t kLanes = 16;
constexpr size_t Padded(size_t width) { return (width + kLanes - 1) / kLanes * kLanes; }

struct Kernels {
  // c[m, n] = a[m, k] * b[k, n], or += with `add`. Element (i, l) of a stands at
  // a[i * a_row + l * a_column]; b and c are row-major with row lengths b_row and c_row. n is a
  // multiple of kLanes.
  void (*multiply)(size_t m, size_t n, size_t k, const float* a, size_t a_row, size_t a_column,
                   const float* b, size_t b_row, float* c, size_t c_row, bool add);
  // out[r, dim] = sum over i in [offsets[r], offsets[r + 1]) of weights[i] * table[places[i]];
  // weights null: all 1. Rows of `out` are out_row floats apart, of `table` dim.
  void (*pool)(const float* table, size_t dim, const uint32_t* places, const float* weights,
               const int64_t* offsets, size_t rows, float* out, size_t out_row);
  // table[places[i]] += scale * weights[i] * gradient[r] for the same i: the step of gradient
  // descent that belongs to `pool`.
  void (*scatter)(float* table, size_t dim, const uint32_t* places, const float* weights,
                  const int64_t* offsets, size_t rows, const float* gradient, size_t gradient_row,
                  float scale);
  // to[i] += scale * from[i]
  void (*add_scaled)(float* to, const float* from, float scale, size_t n);
  // Adds bias[n] to each row; `relu`: then takes the larger of it and 0.
  void (*add_bias)(float* c, size_t rows, size_t n, size_t c_row, const float* bias, bool relu);
  // gradient = 0 where output <= 0.
  void (*mask)(float* gradient, size_t gradient_row, const float* output, size_t output_row,
               size_t rows, size_t n);
  // out[i] = the row of a table of `rows` rows (below 2^32) that id ids[i] belongs to.
  void (*places)(const int64_t* ids, size_t n, uint64_t rows, uint32_t* out);
  // out[i] = x / (1 + |x|), 0 for what is not a number; n is any number.
  void (*squash)(const float* x, size_t n, float* out);
};

const Kernels& KernelsFor(InstructionSet set = BestInstructionSet());

}  // namespace headrace::workloads
