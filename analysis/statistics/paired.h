// Comparing two sides of measurements: ratios with intervals, rank tests, equivalence, and what a
// number of pairs can find. docs/statistics.md explains the words and shows the coverage by
// simulation. Pure functions: same input, same bits, on every thread.
//
// a[i], b[i] are a metric of side A and side B in pair i. A pair of which a side is not finite, or
// not above 0 where a logarithm is taken, was not measured: it is left out and counted. For finite
// input no function returns NaN.
#pragma once
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <vector>

#include "analysis/statistics/statistics.h"

namespace headrace::analysis {

// The interval that says nothing: the result for fewer than two values.
inline constexpr Interval kUnbounded = {-std::numeric_limits<double>::infinity(),
                                        std::numeric_limits<double>::infinity()};

// ln(B/A). The percent to print is 100 (e^log_ratio - 1), and so for the ends of the interval.
struct RatioEstimate {
  double log_ratio = 0;
  Interval interval;    // kUnbounded below two pairs
  size_t pairs = 0;     // pairs used
  size_t left_out = 0;  // pairs with a missing side
};

// ln(b[i] / a[i]) of the pairs that have one, in order. Spans of equal length.
std::vector<double> LogRatios(std::span<const double> a, std::span<const double> b);

// BCa bootstrap interval of the mean (Efron, JASA 82, 1987; acceleration by the jackknife) from
// `resamples` draws. `expand`: its normal quantile is replaced by sqrt(n/(n-1)) t of n-1 degrees,
// which mends the narrowness of percentiles at small n (Hesterberg, The American Statistician 69,
// 2015, section 4.3). Equal values give a point, fewer than two kUnbounded. `values` finite.
Interval BcaMean(std::span<const double> values, double level, uint64_t seed, size_t resamples,
                 bool expand);
// Student's interval of the mean; a point and kUnbounded as above.
Interval StudentMean(std::span<const double> values, double level);

// Mean log ratio over the pairs. The interval reaches as far as the wider of the expanded BCa and
// Student's at each end: plain BCa covers 80 to 93 % instead of 95 % below 20 pairs, and 82 % at 30
// pairs where every tenth pair is an outlier; the two together cover 95 % for a width 3 to 7 %
// above Student's (docs/statistics.md). At n = 2 it is Student's. Equal ratios give a point.
RatioEstimate PairedLogRatio(std::span<const double> a, std::span<const double> b,
                             double level = 0.95, uint64_t seed = 1, size_t resamples = 10000);

// The same for unpaired sides: ln of the mean (or median) of b over that of a. `pairs` is the
// smaller side's count; left_out counts both sides. The interval is BCa by the jackknife over both
// samples, for the median without acceleration (its jackknife is not consistent; Efron 1979). It is
// at least as wide as Welch's interval: of the means or, for the median, of the means of the
// logarithms.
enum class Center { kMean, kMedian };
RatioEstimate UnpairedLogRatio(std::span<const double> a, std::span<const double> b,
                               Center center = Center::kMean, double level = 0.95,
                               uint64_t seed = 1, size_t resamples = 10000);

// Two-sided p of Wilcoxon's signed-rank test that differences are symmetric about 0. Zeros are
// dropped before ranking, ties get their mean rank (SciPy's zero_method="wilcox"). Up to 25
// differences left the distribution is exact, also under ties (over all signs of the ranks at
// hand); above, normal with tie correction and without continuity correction. 1 if none is left.
double WilcoxonSignedRank(std::span<const double> differences);

// Two-sided p of the Mann-Whitney U test. Exact, also under ties, up to 50 values in all; above,
// normal with tie correction and without continuity correction. 1 if a side is empty.
double MannWhitney(std::span<const double> a, std::span<const double> b);

// Holm's adjusted p values (Scandinavian Journal of Statistics 6, 1979), in the order given. A NaN
// stands for a test that was not made: it stays NaN and does not count.
std::vector<double> Holm(std::span<const double> p);

// Two one-sided t tests (Schuirmann 1987): p value of the hypothesis that the mean is at or beyond
// +-margin. Equal values: 0 within the margin, else 1. 1 below two values.
double EquivalenceP(std::span<const double> log_ratios, double margin);

// Smallest |ln ratio| that a two-sided paired t test finds with that power at this number of pairs
// and their spread (noncentral t). 0 for equal ratios; infinity below two.
double DetectableRatio(std::span<const double> log_ratios, double alpha = 0.05, double power = 0.8);

// Pairs in all, the ones at hand included, to find `effect` (|ln ratio|) with that power, at least
// two. Empty: fewer than two values, equal values, or effect 0.
std::optional<size_t> PairsFor(std::span<const double> log_ratios, double effect,
                               double alpha = 0.05, double power = 0.8);

// Verdict on a rate, where more is faster; callers word it for metrics where less is better.
enum class ChangeVerdict { kFaster, kSlower, kSame, kCannotTell };
// kSame is checked first: the margin is what the user calls no change, so even a proven difference
// within it counts as the same. `within`: the two-sided interval for the equivalence test, at 5 %
// less than the level of `interval` (90 % for 95 %); where there is none, pass `interval` twice.
ChangeVerdict VerdictOf(Interval interval, Interval within, double margin);

// Two runs alone, from their windows (say rows per second of each): neighbours are correlated, so
// the unit is a block. It sees what varies within a run, not what varies from run to run: two runs
// of one setting may differ by more than this interval.
struct WindowsEstimate {
  double log_ratio = 0;  // ln(mean b / mean a)
  Interval interval;     // kUnbounded where a side has fewer than four windows
  size_t windows_a = 0, windows_b = 0;
  double effective_a = 0, effective_b = 0;  // how many independent windows they are worth
  size_t block = 1;                         // windows of a block
};
// Circular block bootstrap (Politis, Romano 1992), blocks as long as the estimated dependence; at
// least as wide as Student's interval with the effective counts. Windows that are not finite or
// below 0 are left out.
WindowsEstimate WindowsLogRatio(std::span<const double> a, std::span<const double> b,
                                double level = 0.95, uint64_t seed = 1, size_t resamples = 4000);

// n over the integrated autocorrelation time, by Geyer's initial monotone sequence (Statistical
// Science 7, 1992), between 1 and n. n for equal values.
double EffectiveCount(std::span<const double> series);

}  // namespace headrace::analysis
