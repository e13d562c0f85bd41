#include "analysis/run/first_steps.h"

#include <algorithm>
#include <vector>

#include "analysis/run/ranks.h"
#include "analysis/run/window_rates.h"
#include "analysis/statistics/statistics.h"
#include "analysis/thresholds.h"

namespace headrace::analysis {
namespace {

// What a trainer does once is computing; where it waits, the loading is slow.
double NanosecondsOf(const StepCounters& steps) { return static_cast<double>(steps.compute_ns); }

// The longest that it can have computed in one of a window's steps, if it took as long as usual in
// the others.
double LongestStep(const StepCounters& steps, double usual_ns) {
  const auto others = static_cast<double>(steps.steps_count - 1);
  return NanosecondsOf(steps) - others * usual_ns;
}

}  // namespace

size_t EndOfFirstSteps(const RunView& run, size_t first, size_t last) {
  const std::vector<WindowRow>& windows = run.windows;
  while (first < last && windows[first].steps.steps_count == 0) ++first;
  std::vector<double> means;
  std::vector<size_t> later;
  for (size_t w = first + (last - first) / 2; w < last; ++w) {
    const StepCounters& steps = windows[w].steps;
    if (steps.steps_count <= 0) continue;
    means.push_back(NanosecondsOf(steps) / static_cast<double>(steps.steps_count));
    later.push_back(w);
  }
  if (later.size() < FewestWindows()) return first;
  const double usual_ns = Quantile(means, 0.5);
  std::vector<double> longest;
  for (const size_t w : later) longest.push_back(LongestStep(windows[w].steps, usual_ns));
  const double least_ns = kFirstStepLonger * std::max(usual_ns, Quantile(longest, 0.95));
  size_t end = first;
  double slow_steps = 0, usual_steps = 0;  // usual ones: since the last slow one
  for (size_t w = first; w < later.front() && usual_steps < kFirstStepsApart * RanksOf(run); ++w) {
    const StepCounters& steps = windows[w].steps;
    if (steps.steps_count <= 0) continue;
    const auto count = static_cast<double>(steps.steps_count);
    usual_steps += count;
    if (count > kMostFirstSteps * RanksOf(run) || LongestStep(steps, usual_ns) < least_ns) continue;
    slow_steps += usual_steps;
    end = w + 1;
    usual_steps = 0;
  }
  return slow_steps <= kMostFirstSteps * RanksOf(run) ? end
                                                      : first;  // more are a slower part of the run
}

}  // namespace headrace::analysis
