#include "analysis/statistics/statistics.h"

#include <algorithm>
#include <cmath>

#include "base/check.h"

namespace headrace::analysis {

uint64_t Random::Next() {
  uint64_t z = (state_ += 0x9e3779b97f4a7c15u);
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  return z ^ (z >> 31);
}

double Random::Uniform() { return static_cast<double>(Next() >> 11) * 0x1.0p-53; }

uint64_t Random::Below(uint64_t limit) {
  HR_CHECK(limit > 0, "Below(0)");
  return Next() % limit;
}

double Random::Normal() {
  const double u = 1.0 - Uniform();
  return std::sqrt(-2.0 * std::log(u)) * std::cos(2.0 * M_PI * Uniform());
}

double Random::LogNormal(double mean, double cv) {
  if (cv <= 0 || mean <= 0) return mean;
  const double sigma_squared = std::log1p(cv * cv);
  return mean * std::exp(std::sqrt(sigma_squared) * Normal() - sigma_squared / 2);
}

double Random::Exponential(double mean) { return -mean * std::log(1.0 - Uniform()); }

double Mean(std::span<const double> values) {
  if (values.empty()) return 0;
  double sum = 0;
  for (double value : values) sum += value;
  return sum / static_cast<double>(values.size());
}

double Variance(std::span<const double> values) {
  if (values.size() < 2) return 0;
  const double mean = Mean(values);
  double sum = 0;
  for (double value : values) sum += (value - mean) * (value - mean);
  return sum / static_cast<double>(values.size() - 1);
}

double Quantile(std::vector<double> values, double q) {
  HR_CHECK(!values.empty(), "quantile of nothing");
  std::sort(values.begin(), values.end());
  const double position = std::clamp(q, 0.0, 1.0) * static_cast<double>(values.size() - 1);
  const size_t below = static_cast<size_t>(position);
  const size_t above = std::min(below + 1, values.size() - 1);
  const double weight = position - static_cast<double>(below);
  // Equal ends first: infinity minus infinity is not a number.
  if (values[below] == values[above]) return values[below];
  return values[below] * (1 - weight) + values[above] * weight;
}

Interval CentralInterval(const std::vector<double>& values, double level) {
  return {Quantile(values, (1 - level) / 2), Quantile(values, (1 + level) / 2)};
}

Interval IntervalAround(double estimate, const std::vector<double>& values, double level) {
  if (values.empty()) return {estimate, estimate};
  const Interval central = CentralInterval(values, level);
  return {std::min(central.low, estimate), std::max(central.high, estimate)};
}

std::vector<size_t> BlockResample(size_t num_windows, size_t block, Random& random) {
  std::vector<size_t> indices;
  if (num_windows == 0) return indices;
  block = std::clamp<size_t>(block, 1, num_windows);
  while (indices.size() < num_windows) {
    const size_t start = random.Below(num_windows);
    for (size_t i = 0; i < block && indices.size() < num_windows; ++i) {
      indices.push_back((start + i) % num_windows);
    }
  }
  return indices;
}

}  // namespace headrace::analysis
