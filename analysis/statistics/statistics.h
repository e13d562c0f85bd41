// Statistics used by the statements: a small deterministic generator, quantiles, and the block
// bootstrap (Kuensch 1989; moving blocks keep the autocorrelation of neighbouring windows).
#pragma once
#include <cstdint>
#include <span>
#include <vector>

namespace headrace::analysis {

// SplitMix64 (Steele, Lea, Flood 2014): the same draws on every machine for one seed, which
// std::normal_distribution and its kin do not promise.
class Random {
 public:
  explicit Random(uint64_t seed) : state_(seed) {}
  uint64_t Next();
  double Uniform();                          // [0, 1)
  uint64_t Below(uint64_t limit);            // 0 .. limit - 1, limit > 0
  double Normal();                           // mean 0, deviation 1 (Box-Muller)
  double LogNormal(double mean, double cv);  // by its mean and coefficient of variation
  double Exponential(double mean);

 private:
  uint64_t state_;
};

struct Interval {
  double low = 0, high = 0;
};

double Mean(std::span<const double> values);      // 0 for none
double Variance(std::span<const double> values);  // sample variance, over n - 1; 0 below two values
// The q-quantile by linear interpolation between order statistics (type 7); `values` non-empty.
double Quantile(std::vector<double> values, double q);
Interval CentralInterval(const std::vector<double>& values, double level);
// The same for an estimate of which `values` are draws, widened to contain the estimate: the draws
// of a skewed estimator may all lie on one side of it.
Interval IntervalAround(double estimate, const std::vector<double>& values, double level);

// `count` window indices below `num_windows`: circular blocks of `block` neighbours, drawn with
// replacement.
std::vector<size_t> BlockResample(size_t num_windows, size_t block, Random& random);

}  // namespace headrace::analysis
