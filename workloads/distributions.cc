#include "workloads/distributions.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <numeric>

#include "base/check.h"

namespace headrace::workloads {
namespace {

constexpr double kLn2 = 0.69314718055994530942;

// Sum of k^-s over low+1 .. low+width: exact for short ranges, else the integral between the
// midpoints, whose relative error at rank 64 and above is below 1e-4.
double RangeWeight(uint64_t low, uint64_t width, double s) {
  if (width == 1) return PortablePow(static_cast<double>(low + 1), -s);
  const double a = static_cast<double>(low) + 0.5, b = static_cast<double>(low + width) + 0.5;
  if (std::abs(s - 1) < 1e-9) return (PortableLog2(b) - PortableLog2(a)) * kLn2;
  return (PortablePow(a, 1 - s) - PortablePow(b, 1 - s)) / (s - 1);
}

}  // namespace

double PortableLog2(double x) {
  HR_CHECK(x > 0, "logarithm of a positive number");
  int exponent = 0;
  double m = std::frexp(x, &exponent);  // exact
  if (m < 0.70710678118654752440) {
    m *= 2;
    --exponent;
  }
  const double s = (m - 1) / (m + 1), square = s * s;
  double sum = 0;
  for (int k = 25; k >= 1; k -= 2) sum = sum * square + 1.0 / k;
  return exponent + 2 * s * sum / kLn2;
}

double PortableExp2(double x) {
  HR_CHECK(std::abs(x) < 1000, "exponent in range");
  const double whole = std::floor(x + 0.5);
  const double y = (x - whole) * kLn2;
  double sum = 1;
  for (int k = 18; k >= 1; --k) sum = 1 + sum * y / k;
  return std::ldexp(sum, static_cast<int>(whole));  // exact
}

double PortablePow(double x, double y) {
  if (y == 0) return 1;
  return x == 0 ? 0 : PortableExp2(y * PortableLog2(x));
}

// P. J. Acklam's rational approximation ("An algorithm for computing the inverse normal cumulative
// distribution function", 2003).
double InverseNormal(double p) {
  constexpr double a[] = {-3.969683028665376e+01, 2.209460984245205e+02,  -2.759285104469687e+02,
                          1.383577518672690e+02,  -3.066479806614716e+01, 2.506628277459239e+00};
  constexpr double b[] = {-5.447609879822406e+01, 1.615858368580409e+02, -1.556989798598866e+02,
                          6.680131188771972e+01, -1.328068155288572e+01};
  constexpr double c[] = {-7.784894002430293e-03, -3.223964580411365e-01, -2.400758277161838e+00,
                          -2.549732539343734e+00, 4.374664141464968e+00,  2.938163982698783e+00};
  constexpr double d[] = {7.784695709041462e-03, 3.224671290700398e-01, 2.445134137142996e+00,
                          3.754408661907416e+00};
  constexpr double kTail = 0.02425;
  if (p > 0.5) return -InverseNormal(1 - p);
  if (p < kTail) {
    const double q = std::sqrt(-2 * kLn2 * PortableLog2(p));
    return (((((c[0] * q + c[1]) * q + c[2]) * q + c[3]) * q + c[4]) * q + c[5]) /
           ((((d[0] * q + d[1]) * q + d[2]) * q + d[3]) * q + 1);
  }
  const double q = p - 0.5, r = q * q;
  return (((((a[0] * r + a[1]) * r + a[2]) * r + a[3]) * r + a[4]) * r + a[5]) * q /
         (((((b[0] * r + b[1]) * r + b[2]) * r + b[3]) * r + b[4]) * r + 1);
}

std::vector<uint32_t> Permutation(uint32_t n, uint64_t key) {
  std::vector<uint32_t> order(n);
  std::iota(order.begin(), order.end(), 0U);
  for (uint32_t i = n; i > 1; --i) {
    const uint64_t random = Mix(key, i) >> 32;
    std::swap(order[i - 1], order[random * i >> 32]);
  }
  return order;
}

Zipf::Zipf(uint64_t n, double s) {
  HR_CHECK(n >= 1 && n < (1ULL << 32), "number of ranks in range");
  for (uint64_t low = 0; low < n;) {
    const uint64_t octave = std::bit_floor(low + 1);
    const uint64_t width = std::min(low < 64 ? 1 : octave / 8, n - low);
    ranges_.push_back({low, width});
    low += width;
  }
  std::vector<double> weight;
  for (const Range& range : ranges_) weight.push_back(RangeWeight(range.low, range.width, s));
  constexpr uint32_t kSlots = 1024;
  HR_CHECK(ranges_.size() <= kSlots, "ranges fit the alias table");
  const double total = std::accumulate(weight.begin(), weight.end(), 0.0);
  weight.resize(kSlots, 0.0);
  slots_.resize(kSlots);
  std::vector<uint16_t> small, large;
  for (uint32_t i = 0; i < kSlots; ++i) {
    weight[i] *= kSlots / total;
    (weight[i] < 1 ? small : large).push_back(static_cast<uint16_t>(i));
  }
  while (!small.empty()) {
    const uint16_t i = small.back();
    small.pop_back();
    const uint16_t other = large.empty() ? 0 : large.back();
    // Padding slots beyond the ranges must never choose themselves, even after rounding.
    const uint16_t first = i < ranges_.size() ? i : other;
    slots_[i] = {static_cast<uint32_t>(weight[i] * 0x1p22), first, other};
    if (large.empty()) continue;
    weight[other] -= 1 - weight[i];
    if (weight[other] < 1) {
      large.pop_back();
      small.push_back(other);
    }
  }
  for (const uint16_t i : large) slots_[i] = {1U << 22, i, i};
}

std::vector<double> LogNormalTable(double sigma) {
  constexpr uint32_t kEntries = 4096;
  std::vector<double> table(kEntries);
  double sum = 0;
  for (uint32_t i = 0; i < kEntries; ++i) {
    table[i] = PortableExp2(sigma / kLn2 * InverseNormal((i + 0.5) / kEntries));
    sum += table[i];
  }
  for (double& value : table) value *= kEntries / sum;
  return table;
}

QuantileTable::QuantileTable(Shape shape) : shape_(shape), points_(4097) {
  for (uint32_t i = 0; i <= 4096; ++i) {
    const double z = InverseNormal(std::clamp(i / 4096.0, 0.25 / 4096, 1 - 0.25 / 4096));
    if (shape == Shape::kCount)
      points_[i] = PortableExp2(2 * z / kLn2);
    else if (shape == Shape::kRatio)
      points_[i] = 1 / (1 + PortableExp2(-z / kLn2));
    else
      points_[i] = z;
  }
}

float QuantileTable::Finish(double value) const {
  if (shape_ == Shape::kCount) return static_cast<float>(std::floor(value));
  if (shape_ == Shape::kHundredths) return static_cast<float>(std::floor(value * 100 + 0.5) / 100);
  return static_cast<float>(value);
}

ChangeTable::ChangeTable(double repeat_probability)
    : every_row_(repeat_probability <= 0), gaps_(256, 1) {
  if (every_row_) return;
  constexpr uint32_t kNever = 1U << 30;
  if (repeat_probability >= 1) {
    std::fill(gaps_.begin(), gaps_.end(), kNever);
    return;
  }
  // P(gap > g) = d^g, so the gap at probability u is floor(log(1 - u) / log d) + 1.
  const double scale = 1 / PortableLog2(repeat_probability);
  for (uint32_t i = 0; i < 256; ++i) {
    const double gap = std::floor(PortableLog2(1 - (i + 0.5) / 256) * scale) + 1;
    gaps_[i] = static_cast<uint32_t>(std::min(gap, 1e9));
  }
}

}  // namespace headrace::workloads
