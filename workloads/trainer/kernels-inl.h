// The body of every kernels_x.cc, which sets HR_KERNELS (the table's name), HR_TILE_ROWS and
// HR_TILE_VECTORS (accumulators that fit its registers). The compiler turns a vector of 64 bytes
// into what its instruction set has. No header with inline code may come in here: the linker could
// take its copy, made for this instruction set, for all.
#pragma once
#include <stddef.h>
#include <stdint.h>

#include "workloads/trainer/kernels.h"

namespace headrace::workloads {
namespace {

typedef float Vector __attribute__((vector_size(64), aligned(4), may_alias));
constexpr size_t kAhead = 12;  // ids whose table rows are asked for early

inline Vector Load(const float* from) { return *reinterpret_cast<const Vector*>(from); }
inline void Store(float* to, const Vector& value) { *reinterpret_cast<Vector*>(to) = value; }

// kRows rows by kVectors vectors of c, kept in registers over all of k.
template <size_t kRows, size_t kVectors>
inline void Tile(size_t k, const float* a, size_t a_row, size_t a_column, const float* b,
                 size_t b_row, float* c, size_t c_row, bool add) {
  Vector sum[kRows][kVectors];
  for (size_t i = 0; i < kRows; ++i)
    for (size_t v = 0; v < kVectors; ++v)
      sum[i][v] = add ? Load(c + i * c_row + v * kLanes) : Vector{};
  for (size_t l = 0; l < k; ++l) {
    Vector right[kVectors];
    for (size_t v = 0; v < kVectors; ++v) right[v] = Load(b + l * b_row + v * kLanes);
    for (size_t i = 0; i < kRows; ++i) {
      const float left = a[i * a_row + l * a_column];
      for (size_t v = 0; v < kVectors; ++v) sum[i][v] += left * right[v];
    }
  }
  for (size_t i = 0; i < kRows; ++i)
    for (size_t v = 0; v < kVectors; ++v) Store(c + i * c_row + v * kLanes, sum[i][v]);
}

template <size_t kVectors>
inline void Strip(size_t m, size_t k, const float* a, size_t a_row, size_t a_column, const float* b,
                  size_t b_row, float* c, size_t c_row, bool add) {
  size_t i = 0;
  for (; i + HR_TILE_ROWS <= m; i += HR_TILE_ROWS)
    Tile<HR_TILE_ROWS, kVectors>(k, a + i * a_row, a_row, a_column, b, b_row, c + i * c_row, c_row,
                                 add);
  for (; i < m; ++i)
    Tile<1, kVectors>(k, a + i * a_row, a_row, a_column, b, b_row, c + i * c_row, c_row, add);
}

void Multiply(size_t m, size_t n, size_t k, const float* a, size_t a_row, size_t a_column,
              const float* b, size_t b_row, float* c, size_t c_row, bool add) {
  constexpr size_t kWide = HR_TILE_VECTORS * kLanes;
  size_t j = 0;
  for (; j + kWide <= n; j += kWide)
    Strip<HR_TILE_VECTORS>(m, k, a, a_row, a_column, b + j, b_row, c + j, c_row, add);
  for (; j < n; j += kLanes) Strip<1>(m, k, a, a_row, a_column, b + j, b_row, c + j, c_row, add);
}

// One stretch of at most 4 vectors of the table's rows.
template <size_t kVectors>
inline void PoolColumns(const float* table, size_t dim, const uint32_t* places,
                        const float* weights, const int64_t* offsets, size_t rows, float* out,
                        size_t out_row) {
  const int64_t all = offsets[rows];
  for (size_t r = 0; r < rows; ++r) {
    Vector sum[kVectors];
    for (size_t v = 0; v < kVectors; ++v) sum[v] = Vector{};
    for (int64_t i = offsets[r]; i < offsets[r + 1]; ++i) {
      if (i + static_cast<int64_t>(kAhead) < all)
        __builtin_prefetch(table + size_t{places[i + static_cast<int64_t>(kAhead)]} * dim);
      const float* row = table + size_t{places[i]} * dim;
      if (weights == nullptr) {
        for (size_t v = 0; v < kVectors; ++v) sum[v] += Load(row + v * kLanes);
      } else {
        for (size_t v = 0; v < kVectors; ++v) sum[v] += weights[i] * Load(row + v * kLanes);
      }
    }
    for (size_t v = 0; v < kVectors; ++v) Store(out + r * out_row + v * kLanes, sum[v]);
  }
}

void Pool(const float* table, size_t dim, const uint32_t* places, const float* weights,
          const int64_t* offsets, size_t rows, float* out, size_t out_row) {
  size_t c = 0;
  for (; c + 4 * kLanes <= dim; c += 4 * kLanes)
    PoolColumns<4>(table + c, dim, places, weights, offsets, rows, out + c, out_row);
  for (; c < dim; c += kLanes)
    PoolColumns<1>(table + c, dim, places, weights, offsets, rows, out + c, out_row);
}

void Scatter(float* table, size_t dim, const uint32_t* places, const float* weights,
             const int64_t* offsets, size_t rows, const float* gradient, size_t gradient_row,
             float scale) {
  const int64_t all = offsets[rows];
  for (size_t r = 0; r < rows; ++r) {
    const float* from = gradient + r * gradient_row;
    for (int64_t i = offsets[r]; i < offsets[r + 1]; ++i) {
      if (i + static_cast<int64_t>(kAhead) < all)
        __builtin_prefetch(table + size_t{places[i + static_cast<int64_t>(kAhead)]} * dim, 1);
      float* row = table + size_t{places[i]} * dim;
      const float factor = weights == nullptr ? scale : scale * weights[i];
      for (size_t c = 0; c < dim; c += kLanes)
        Store(row + c, Load(row + c) + factor * Load(from + c));
    }
  }
}

void AddScaled(float* to, const float* from, float scale, size_t n) {
  for (size_t i = 0; i < n; i += kLanes) Store(to + i, Load(to + i) + scale * Load(from + i));
}

void AddBias(float* c, size_t rows, size_t n, size_t c_row, const float* bias, bool relu) {
  for (size_t r = 0; r < rows; ++r) {
    for (size_t i = 0; i < n; i += kLanes) {
      float* at = c + r * c_row + i;
      const Vector sum = Load(at) + Load(bias + i);
      Store(at, relu ? (sum > 0.0f ? sum : Vector{}) : sum);
    }
  }
}

void Mask(float* gradient, size_t gradient_row, const float* output, size_t output_row, size_t rows,
          size_t n) {
  for (size_t r = 0; r < rows; ++r) {
    for (size_t i = 0; i < n; i += kLanes) {
      float* at = gradient + r * gradient_row + i;
      Store(at, Load(output + r * output_row + i) > 0.0f ? Load(at) : Vector{});
    }
  }
}

void Places(const int64_t* ids, size_t n, uint64_t rows, uint32_t* out) {
  for (size_t i = 0; i < n; ++i) {
    const uint64_t spread = static_cast<uint64_t>(ids[i]) * 0x9e3779b97f4a7c15u;
    out[i] = static_cast<uint32_t>((spread >> 32) * rows >> 32);
  }
}

void Squash(const float* x, size_t n, float* out) {
  for (size_t i = 0; i < n; ++i) {
    const float value = x[i] < 1e30f ? (x[i] > -1e30f ? x[i] : (x[i] == x[i] ? -1e30f : 0.0f))
                                     : (x[i] == x[i] ? 1e30f : 0.0f);
    out[i] = value / (1.0f + (value < 0 ? -value : value));
  }
}

}  // namespace

extern const Kernels HR_KERNELS;
const Kernels HR_KERNELS = {Multiply, Pool, Scatter, AddScaled, AddBias, Mask, Places, Squash};

}  // namespace headrace::workloads
