#include "workloads/feature_set.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace headrace::workloads {
namespace {

using reader::FeatureKind;

constexpr double kLog2E = 1.44269504088896340736;
constexpr double kLowestCoverage = 0.005;

// Names of the random choices of a table: keys must differ, values mean nothing.
enum class Choice : uint64_t { kCoverage = 1, kLength, kSwap, kRepeat, kShape, kIds, kHistory };

uint64_t Key(const WorkloadSpec& spec, FeatureKind kind, Choice choice) {
  return Mix(Mix(spec.seed, static_cast<uint64_t>(choice)), static_cast<uint64_t>(kind) + 100);
}

double Mean(const std::vector<double>& values) {
  return values.empty() ? 0
                        : std::accumulate(values.begin(), values.end(), 0.0) /
                              static_cast<double>(values.size());
}

// Shifts what is not at a bound until the mean is `target`.
void ShiftToMean(std::vector<double>* values, double target, double low, double high) {
  for (int round = 0; round < 100; ++round) {
    const double shift = target - Mean(*values);
    if (std::abs(shift) < 1e-12) return;
    for (double& value : *values) value = std::clamp(value + shift, low, high);
  }
}

// Quantiles of u^(1/mean - 1), whose mean over u in (0, 1) is `mean`: many rare features, some that
// nearly all rows have.
std::vector<double> Coverages(uint32_t n, double mean, uint64_t key) {
  const std::vector<uint32_t> order = Permutation(n, key);
  std::vector<double> coverage(n);
  for (uint32_t i = 0; i < n; ++i)
    coverage[i] = std::max(kLowestCoverage, PortablePow((order[i] + 0.5) / n, 1 / mean - 1));
  ShiftToMean(&coverage, mean, std::min(kLowestCoverage, mean), 1);
  return coverage;
}

double Covariance(const std::vector<double>& a, const std::vector<double>& b) {
  const double mean_a = Mean(a), mean_b = Mean(b);
  double sum = 0;
  for (size_t i = 0; i < a.size(); ++i) sum += (a[i] - mean_a) * (b[i] - mean_b);
  return sum / static_cast<double>(a.size());
}

// Swaps lengths between features while that brings their covariance with coverage nearer to 0,
// then removes the rest by regression.
void Uncorrelate(const std::vector<double>& coverage, std::vector<double>* length, uint64_t key) {
  const size_t n = length->size();
  if (n < 2) return;
  double sum = Covariance(coverage, *length) * static_cast<double>(n);
  for (uint64_t attempt = 0; attempt < 50 * n; ++attempt) {
    const uint64_t random = Mix(key, attempt);
    const size_t i = (random >> 32) % n, j = (random & 0xffffffff) % n;
    const double change = (coverage[i] - coverage[j]) * ((*length)[j] - (*length)[i]);
    if (std::abs(sum + change) >= std::abs(sum)) continue;
    sum += change;
    std::swap((*length)[i], (*length)[j]);
  }
  const double variance = Covariance(coverage, coverage);
  if (variance < 1e-9) return;
  const double slope = Covariance(coverage, *length) / variance, mean = Mean(coverage);
  for (size_t i = 0; i < n; ++i) (*length)[i] -= slope * (coverage[i] - mean);
}

std::vector<double> Lengths(const WorkloadSpec& spec, const std::vector<double>& coverage,
                            uint64_t key) {
  const auto n = static_cast<uint32_t>(coverage.size());
  const std::vector<uint32_t> order = Permutation(n, key);
  const double mean = spec.list_length_mean, sigma = spec.feature_length_sigma;
  const double lowest = std::min(mean, 1.2), highest = 8 * mean;
  std::vector<double> length(n);
  for (uint32_t i = 0; i < n; ++i) {
    const double z = InverseNormal((order[i] + 0.5) / n);
    length[i] = mean * PortableExp2(kLog2E * (sigma * z - sigma * sigma / 2));
  }
  ShiftToMean(&length, mean, lowest, highest);
  Uncorrelate(coverage, &length, Mix(key));
  ShiftToMean(&length, mean, lowest, highest);
  return length;
}

// A share of `n` features, spread evenly: true for the first round(ratio n) of a permutation.
std::vector<bool> Share(uint32_t n, double ratio, uint64_t key) {
  const std::vector<uint32_t> order = Permutation(n, key);
  std::vector<bool> chosen(n);
  for (uint32_t i = 0; i < n; ++i) chosen[i] = order[i] + 0.5 < ratio * n;
  return chosen;
}

// Repeat probabilities on 32 levels: the user-side ones evenly between the bounds, 0 for the rest.
std::vector<double> Repeats(const WorkloadSpec& spec, uint32_t n, uint64_t key) {
  const std::vector<bool> user_side = Share(n, spec.user_side_ratio, key);
  std::vector<double> repeat(n);
  for (uint32_t i = 0; i < n; ++i) {
    const double level = static_cast<double>(Mix(key, i) >> 59) / 31;
    if (user_side[i])
      repeat[i] = spec.duplication_low + (spec.duplication_high - spec.duplication_low) * level;
  }
  return repeat;
}

std::vector<Feature> DenseFeatures(const WorkloadSpec& spec, uint32_t n) {
  constexpr FeatureKind kKind = FeatureKind::kDense;
  const auto coverage = Coverages(n, spec.coverage_mean, Key(spec, kKind, Choice::kCoverage));
  const auto repeat = Repeats(spec, n, Key(spec, kKind, Choice::kRepeat));
  const auto shapes = Permutation(n, Key(spec, kKind, Choice::kShape));
  std::vector<Feature> features(n);
  for (uint32_t i = 0; i < n; ++i) {
    features[i].coverage = coverage[i];
    features[i].repeat = repeat[i];
    features[i].shape = static_cast<QuantileTable::Shape>(shapes[i] % 4);
  }
  return features;
}

// Rough stored bytes per row; measured on zstd streams, where repeated values shrink most.
double ExpectedBytes(const Feature& feature) {
  constexpr double kBytesPerId[] = {1.3, 4, 7.5};
  const double repeated = feature.repeat > 0 ? 0.25 : 1;
  return feature.coverage * feature.mean_length * kBytesPerId[static_cast<size_t>(feature.ids)] *
         repeated;
}

// In a small table one feature could hold half of all bytes, and no selection could then meet the
// share of bytes used. A feature above 4 times the mean share (and 3 % more) exchanges its kind of
// ids and of repetition with that of a random one, if that makes the larger of the two smaller.
void LimitLargest(std::vector<Feature>* features, uint64_t key) {
  const size_t n = features->size();
  for (uint64_t attempt = 0; attempt < 40 * n; ++attempt) {
    double total = 0;
    size_t largest = 0;
    for (size_t i = 0; i < n; ++i) {
      total += ExpectedBytes((*features)[i]);
      if (ExpectedBytes((*features)[i]) > ExpectedBytes((*features)[largest])) largest = i;
    }
    Feature& big = (*features)[largest];
    if (ExpectedBytes(big) <= total * (4.0 / static_cast<double>(n) + 0.03)) return;
    Feature& other = (*features)[(Mix(key, attempt) >> 32) % n];
    const auto exchange = [&] {
      std::swap(big.ids, other.ids);
      std::swap(big.repeat, other.repeat);
      std::swap(big.history, other.history);
    };
    const double before = ExpectedBytes(big);
    exchange();
    if (std::max(ExpectedBytes(big), ExpectedBytes(other)) >= before) exchange();
  }
}

std::vector<Feature> SparseFeatures(const WorkloadSpec& spec, uint32_t n) {
  constexpr FeatureKind kKind = FeatureKind::kSparse;
  const auto coverage = Coverages(n, spec.coverage_mean, Key(spec, kKind, Choice::kCoverage));
  const auto length = Lengths(spec, coverage, Key(spec, kKind, Choice::kLength));
  const auto repeat = Repeats(spec, n, Key(spec, kKind, Choice::kRepeat));
  const auto ids = Permutation(n, Key(spec, kKind, Choice::kIds));
  const auto history = Share(n, spec.history_ratio, Key(spec, kKind, Choice::kHistory));
  std::vector<Feature> features(n);
  for (uint32_t i = 0; i < n; ++i) {
    Feature& feature = features[i];
    feature.coverage = coverage[i];
    feature.mean_length = length[i];
    feature.repeat = repeat[i];
    const double place = (ids[i] + 0.5) / n;
    feature.ids = place < spec.small_id_ratio                          ? IdClass::kSmall
                  : place < spec.small_id_ratio + spec.medium_id_ratio ? IdClass::kMedium
                                                                       : IdClass::kLarge;
    feature.history = history[i] && feature.repeat > 0;
  }
  LimitLargest(&features, Key(spec, kKind, Choice::kSwap));
  return features;
}

}  // namespace

const char* IdClassName(IdClass id_class) {
  switch (id_class) {
    case IdClass::kSmall:
      return "small";
    case IdClass::kMedium:
      return "medium";
    case IdClass::kLarge:
      return "large";
  }
  return "";
}

const char* ColumnName(FeatureKind kind) {
  switch (kind) {
    case FeatureKind::kDense:
      return "dense";
    case FeatureKind::kSparse:
      return "sparse";
    case FeatureKind::kWeightedSparse:
      return "weighted";
  }
  return "";
}

std::string FeatureColumn(const Feature& feature) {
  return std::string(ColumnName(feature.kind)) + ":" + std::to_string(feature.key);
}

std::vector<Feature> MakeFeatures(const WorkloadSpec& spec) {
  const FeatureCounts counts = ScaledCounts(spec);
  std::vector<Feature> features = DenseFeatures(spec, counts.dense);
  const std::vector<Feature> sparse = SparseFeatures(spec, counts.sparse + counts.weighted);
  features.insert(features.end(), sparse.begin(), sparse.end());
  for (uint32_t i = 0; i < features.size(); ++i) {
    Feature& feature = features[i];
    const uint32_t first_weighted = counts.dense + counts.sparse;
    feature.kind = i < counts.dense     ? FeatureKind::kDense
                   : i < first_weighted ? FeatureKind::kSparse
                                        : FeatureKind::kWeightedSparse;
    feature.key = 1 + i -
                  (i < counts.dense     ? 0
                   : i < first_weighted ? counts.dense
                                        : first_weighted);
    feature.random_key = Mix(Mix(spec.seed, static_cast<uint64_t>(feature.kind)), feature.key);
  }
  return features;
}

}  // namespace headrace::workloads
