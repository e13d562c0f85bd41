#include "reader/service/interval_estimates.h"

#include <algorithm>
#include <cmath>
#include <vector>

namespace headrace::reader {
namespace {

constexpr double kNearlyAll = 0.98;  // largest share used in 1 / (1 - share)
// A demand that rose: two intervals in a row are above the median of those before by such a share
// and so many deviations of one interval. As close to each other as kSteady, it rises no more.
// Consumers that get less than kNoStall of what they got are stalled by something else.
constexpr double kRose = 0.25, kDeviations = 3.5, kSteady = 0.1, kNoStall = 0.9;

// Of normal values, the deviation over the median distance from the median.
constexpr double kDeviationOfMedian = 1.4826;

// Values further than 3 deviations (by the median absolute deviation) from the median count as if
// they were there: one odd interval moves a mean of few too far.
void Winsorise(std::vector<double>* values) {
  if (values->size() < 4) return;
  const double median = MedianOf(*values);
  std::vector<double> off;
  for (const double value : *values) off.push_back(std::abs(value - median));
  const double reach = 3 * kDeviationOfMedian * MedianOf(off);
  if (reach <= 0) return;
  for (double& value : *values) value = std::clamp(value, median - reach, median + reach);
}

double Mean(const std::vector<double>& values) {
  double sum = 0;
  for (const double value : values) sum += value;
  return values.empty() ? 0 : sum / static_cast<double>(values.size());
}

double Deviation(const std::vector<double>& values) {
  if (values.size() < 2) return 0;
  const double mean = Mean(values);
  double sum = 0;
  for (const double value : values) sum += (value - mean) * (value - mean);
  return std::sqrt(sum / static_cast<double>(values.size() - 1));
}

}  // namespace

double MedianOf(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

double ReachOf(int samples) {
  if (samples < 3) return 12.8;
  if (samples < 5) return 4.4;
  if (samples < 9) return 2.8;
  return samples < 20 ? 2.4 : 2.1;
}

IntervalEstimate RecentMean(const IntervalSamples& samples, IntervalValue value) {
  std::vector<double> taken, block;
  double sum = 0, squares = 0;  // of `taken`; squares around `origin`
  const double origin = samples.empty() ? 0 : value(samples.back());
  for (auto it = samples.rbegin(); it != samples.rend(); ++it) {
    block.push_back(value(*it) - origin);
    if (static_cast<int>(block.size()) < kIntervalBlock) continue;
    double block_sum = 0, block_squares = 0;
    for (const double x : block) {
      block_sum += x;
      block_squares += x * x;
    }
    if (!taken.empty()) {
      const auto count = static_cast<double>(taken.size());
      const double within =
          squares - sum * sum / count + block_squares - block_sum * block_sum / kIntervalBlock;
      const double deviation = std::sqrt(std::max(0.0, within) / (count + kIntervalBlock - 2));
      const double error = deviation * std::sqrt(1.0 / kIntervalBlock + 1 / count);
      const double mean = sum / count;
      if (std::abs(block_sum / kIntervalBlock - mean) >
          kMeansDiffer * error + kMeansAlike * (mean + origin)) {
        break;
      }
    }
    taken.insert(taken.end(), block.begin(), block.end());
    sum += block_sum;
    squares += block_squares;
    block.clear();
  }
  if (taken.empty()) taken = block;
  Winsorise(&taken);
  const int count = static_cast<int>(taken.size());
  const double deviation = Deviation(taken);
  return {origin + Mean(taken), deviation / std::sqrt(std::max(1, count)), deviation, count};
}

IntervalEstimate MeanSince(const IntervalSamples& samples, IntervalValue value, double since_s,
                           size_t most) {
  std::vector<double> values;
  for (auto it = samples.rbegin();
       it != samples.rend() && it->time_s > since_s && values.size() < most; ++it) {
    values.push_back(value(*it));
  }
  const int count = static_cast<int>(values.size());
  const double deviation = Deviation(values);
  return {Mean(values), deviation / std::sqrt(std::max(1, count)), deviation, count};
}

double DemandOf(double rate, double starved) { return rate / (1 - std::min(starved, kNearlyAll)); }
double CapacityOf(double rate, double waste) { return rate / (1 - std::min(waste, kNearlyAll)); }

std::optional<DemandRise> RiseOfDemand(const IntervalSamples& samples) {
  constexpr size_t kLatest = 2, kLeast = 4, kMost = 12;
  if (samples.size() < kLatest + kLeast) return std::nullopt;
  const auto ago = [&samples](size_t i) -> const IntervalSample& {
    return samples[samples.size() - 1 - i];
  };
  const auto demand = [&](size_t i) { return DemandOf(ago(i).rate, ago(i).starved); };
  std::vector<double> earlier, rates, off;
  for (size_t i = kLatest; i < std::min(samples.size(), kLatest + kMost); ++i) {
    earlier.push_back(demand(i));
    rates.push_back(ago(i).rate);
  }
  const double usual = MedianOf(earlier), rate = MedianOf(rates);
  for (const double value : earlier) off.push_back(std::abs(value - usual));
  const double far = usual * (1 + kRose) + kDeviations * kDeviationOfMedian * MedianOf(off);
  // What consumers ask for does not lower what they get, as what stalls them does.
  const auto rose = [&](size_t i) {
    return demand(i) > far && ago(i).rate >= kNoStall * rate && ago(i).starved < kNearlyAll;
  };
  if (!rose(0)) return std::nullopt;
  DemandRise rise;
  const bool is_steady = std::abs(demand(0) - demand(1)) <= kSteady * demand(1);
  rise.demand = is_steady ? (demand(0) + demand(1)) / 2 : demand(0);
  rise.half = std::abs(demand(0) - demand(1)) / 2;
  // One interval alone may be odd, and a second one not the end of it. After a third it is known.
  rise.is_young = !rose(1) || (!is_steady && demand(0) > demand(1) && !rose(2));
  return rise;
}

}  // namespace headrace::reader
