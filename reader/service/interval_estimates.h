// What the observations of some intervals say of a preprocessing service: means with their errors,
// and whether the consumers' demand has just risen. Used by the autoscaler (autoscaler.h).
#pragma once
#include <cstddef>
#include <deque>
#include <optional>
#include <vector>

namespace headrace::reader {

// One interval. Rates are in batches per second.
struct IntervalSample {
  double time_s = 0;   // when it ended
  double workers = 0;  // that served, on average
  double rate = 0;     // taken by all consumers
  double starved = 0;  // share of the consumers' time, 0 to 1
  double waste = 0;    // share of the workers' time that was not needed, 0 to 1
};
using IntervalSamples = std::deque<IntervalSample>;  // oldest first
using IntervalValue = double (*)(const IntervalSample&);

struct IntervalEstimate {
  double mean = 0, error = 0, deviation = 0;  // error: of the mean
  int samples = 0;
};

inline constexpr int kIntervalBlock = 4;     // samples by which a mean is widened
inline constexpr double kMeansDiffer = 3.5;  // standard errors
inline constexpr double kMeansAlike = 0.02;  // this close they are the same whatever the noise

// Of at least one value; of an even number the upper of the middle two.
double MedianOf(std::vector<double> values);

// Half the width of a 95 % interval in standard errors: Student's t, rounded up.
double ReachOf(int samples);

// What consumers that waited such a share of their time would take, and what workers that had such
// a share to spare could make, in the unit of `rate`. A share counts as 0.98 at most.
double DemandOf(double rate, double starved);
double CapacityOf(double rate, double waste);

// The winsorised mean over the latest samples that agree with each other: block by block backwards
// until one differs by a test of means, as an adaptive window does (Bifet and Gavalda, 2007).
IntervalEstimate RecentMean(const IntervalSamples& samples, IntervalValue value);

// The mean over at most `most` of the latest samples that ended after `since_s`.
IntervalEstimate MeanSince(const IntervalSamples& samples, IntervalValue value, double since_s,
                           size_t most);

// What the latest two intervals say of a demand that is far above that of those before, so that a
// mean has not followed yet.
struct DemandRise {
  double demand = 0, half = 0;  // batches per second; half of what the two differ by
  bool is_young = false;        // one interval more may say more
};
// Empty: it did not rise, or there are fewer than six samples.
std::optional<DemandRise> RiseOfDemand(const IntervalSamples& samples);

}  // namespace headrace::reader
