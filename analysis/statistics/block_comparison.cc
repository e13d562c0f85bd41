#include "analysis/statistics/block_comparison.h"

#include <algorithm>
#include <cmath>
#include <iterator>

namespace headrace::analysis {
namespace {

// Two-sided quantiles of Student's t for 1, 2, ... degrees of freedom, and of the normal behind
// them: 95 %, and 99 % for looks on the way.
constexpr double kT95[] = {12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306,
                           2.262,  2.228, 2.201, 2.179, 2.160, 2.145, 2.131, 2.120};
constexpr double kT99[] = {63.657, 9.925, 5.841, 4.604, 4.032, 3.707, 3.499, 3.355,
                           3.250,  3.169, 3.106, 3.055, 3.012, 2.977, 2.947, 2.921};
constexpr size_t kFewestPairs = 3;

template <size_t N>
double At(const double (&table)[N], double freedom) {
  const size_t index = static_cast<size_t>(std::clamp(freedom, 1.0, static_cast<double>(N)));
  return table[index - 1];
}

Effect EffectOf(double mean, double error, double freedom, double of_clear, size_t pairs) {
  const double half = At(kT95, freedom) * error;
  Effect effect{std::expm1(mean), {std::expm1(mean - half), std::expm1(mean + half)}, pairs};
  effect.clear = std::abs(mean) > of_clear * error;
  return effect;
}

}  // namespace

Effect CompareWindows(const std::vector<double>& a, const std::vector<double>& b) {
  // The ratio of the mean rates, not the mean of logarithms, in which a window without a step would
  // outweigh all others.
  const double mean = std::log(Mean(b) / Mean(a));
  // Neighbouring windows are correlated, so only half of them count as independent.
  const auto error_of = [](const std::vector<double>& rates) {
    const double relative = Variance(rates) / (Mean(rates) * Mean(rates));
    return relative / std::max(1.0, static_cast<double>(rates.size()) / 2);
  };
  const double error = std::max(0.002, std::sqrt(error_of(a) + error_of(b)));
  const double freedom = static_cast<double>(a.size() + b.size()) / 2 - 2;
  return EffectOf(mean, error, freedom, At(kT99, freedom), 0);
}

BlockComparison::BlockComparison(bool first_is_new, size_t pairs, double block_error)
    : first_is_new_(first_is_new),
      pairs_(std::max(pairs, kFewestPairs)),
      block_error_(block_error) {}

bool BlockComparison::NextIsNew() const {
  const size_t index = old_.size() + new_.size();
  const bool first = (index % 2 == 0) == (index / 2 % 2 == 0);
  return first == first_is_new_;
}

void BlockComparison::Add(double rate) { (NextIsNew() ? new_ : old_).push_back(rate); }

Effect BlockComparison::effect() const {
  const size_t pairs = std::min(old_.size(), new_.size());
  if (pairs == 0) return {};
  std::vector<double> logs;
  for (size_t i = 0; i < pairs; ++i) logs.push_back(std::log(new_[i] / old_[i]));
  const double n = static_cast<double>(pairs);
  const double error =
      std::max(std::sqrt(Variance(logs) / n), block_error_ * std::sqrt(2.0) / std::sqrt(n));
  const double freedom = n - 1;
  Effect effect = EffectOf(Mean(logs), error, freedom,
                           pairs < pairs_ ? At(kT99, freedom) : At(kT95, freedom), pairs);
  effect.clear = effect.clear && pairs >= kFewestPairs;
  return effect;
}

bool BlockComparison::done() const {
  if (old_.size() != new_.size()) return false;
  return new_.size() >= pairs_ || effect().clear;
}

}  // namespace headrace::analysis
