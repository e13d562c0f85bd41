// Autoscaler: how many preprocessing workers a service should have. A policy only: no thread, no
// clock, no network. Whoever runs the workers reports once an interval what was observed, and gets
// the wanted number with the reason.
//
// It decides by what consumers and workers experience, not by utilisation: the share of their time
// that consumers wait for batches (starvation) and the share of their time that workers have
// nothing to do or no room for a batch (waste). From these follow two rates that do not depend on
// the number of workers as long as nothing else limits:
//
//   demand          = batches taken per second / (1 - starvation)
//   rate per worker = batches taken per second / (workers * (1 - waste))
//
//   wanted = the fewest workers that are expected to starve consumers by at most `starved_target`,
//            their rate varying as it was seen to vary
//
// so that one decision is enough (an autoscaler that adds one worker while the batch time improves,
// as Cachew's, ATC 2022, needs as many decisions as workers are missing). Whether added workers
// helped is measured as Cachew does, by the batches that consumers get. If they did not, something
// that all workers share is the limit, and the policy looks for the fewest workers that reach it.
//
// Against noise, rates are winsorised means, with standard errors, over as many of the latest
// intervals as agree with each other; a demand that rose far is that of the latest two. Growing
// uses the estimate itself, because a starving consumer costs most. Shrinking uses the cautious end
// of the interval, and happens only after a wait, which follows the measured start-up delay and
// doubles each time shrinking had to be taken back.
//
// Not thread-safe. docs/autoscale.md.
#pragma once
#include <cstdint>
#include <deque>
#include <limits>
#include <optional>
#include <string>

#include "reader/service/interval_estimates.h"

namespace headrace::reader {

// One interval of the service. Absent: not known for this interval.
struct FleetObservation {
  double time_s = 0;   // when the interval ended, on any clock that does not go back
  double seconds = 0;  // its length, > 0
  double serving = 0;  // workers that served in it, on average
  int ready = 0;       // workers that serve at its end
  int starting = 0;    // asked for at its end, not serving yet
  std::optional<double> batches = {};  // taken by all consumers in the interval
  // Share of the consumers' time spent waiting for a batch, 0 to 1: the mean over consumers, or for
  // consumers that work in step, the worst.
  std::optional<double> starved_ratio = {};
  std::optional<double> waste_ratio =
      {};  // share of serving workers' time idle or without room, 0 to 1
  // Batches that wait at the workers. Only mentioned in reasons, because a level is not a rate.
  std::optional<double> buffered_batches = {};
};

struct AutoscaleOptions {
  int least = 1, most = 1000;
  double starved_line = 0.05;  // grow above
  double starved_target =
      0.02;                  // what the wanted number is expected to leave; shrink at most at it
  double waste_line = 0.08;  // shrink above
  int grow_intervals = 4;    // observations after a change before growing
  // Observations after a change before shrinking; 4, or two start-ups, where at most 0.7 of the
  // workers, and three fewer, would do.
  int shrink_intervals = 12;
  int patience_intervals = 30;  // most observations to find whether added workers helped
  double most_growth = 8;       // in one decision, as a factor on the present workers
  double startup_s = 30;        // assumed until a start-up has been observed
  // After a longer gap between observations, estimates start anew; 0: 5 intervals.
  double stale_s = 0;
  // Prices per hour, any currency; both or none. With them the wanted number is the one with the
  // least cost per batch, consumers' and workers' time together (as Pecan, ATC 2024), instead of
  // `starved_target`.
  std::optional<double> worker_price = {}, consumers_price = {};  // one worker; all consumers
};

// What keeps consumers from more batches.
enum class FleetLimit : uint8_t {
  kUnknown,    // not enough seen
  kConsumers,  // they take what they can: nothing to gain
  kWorkers,    // more workers give more
  kUpstream,   // something all workers share (storage, network): more workers give no more
  kDelivery,   // workers have batches and no room while consumers wait: the way between them
  kBound,      // workers, but as many as allowed are running, or no more arrive
};
const char* Name(FleetLimit limit);

struct RateEstimate {
  double value = 0, low = 0, high = 0;  // per second; mean and 95 % interval
  int samples = 0;                      // intervals that it is computed from
};

struct AutoscaleDecision {
  int wanted = 0;  // workers, those starting included
  int change = 0;  // `wanted` minus the previous one
  FleetLimit limit = FleetLimit::kUnknown;
  std::string reason;  // one sentence with the figures it rests on
  // Workers that suffice according to the figures; absent before there is an estimate.
  std::optional<int> needed, needed_low, needed_high;
  std::optional<RateEstimate> demand, rate_per_worker;  // batches per second
};

class Autoscaler {
 public:
  // `workers`: how many exist or were asked for. Throws Error kUsage for options that contradict
  // each other, naming the option.
  Autoscaler(const AutoscaleOptions& options, int workers);

  // Call once an interval, also when nothing is known of it. Values out of their range count as
  // absent: the number is held.
  AutoscaleDecision Observe(const FleetObservation& seen);

  // There is room for no more workers than so many, also where options.least is more: it stays so.
  void Bound(int most);

  // Time from asking for workers until they serve: the median of those observed, at first the
  // option's value.
  double startup_s() const { return startup_s_; }

 private:
  // A trial of added workers: how many there were before, and the rate that consumers got then.
  struct Trial {
    int workers = 0;
    IntervalEstimate rate;
    double per_worker = 0;
  };
  // The rate that something shared by all workers allows, and the search for the fewest workers
  // that reach it.
  struct Ceiling {
    double rate = 0, error = 0;
    double per_worker = 0;  // rate per worker while it was not the limit
    int reach = 0;          // workers known to reach it
    int too_few = 0;        // workers known not to
    bool settled = false;
  };
  struct Figures;

  std::optional<std::string> Accept(const FleetObservation& seen);
  void FollowStartup(const FleetObservation& seen);
  // Over at most `most` of the samples of this level.
  IntervalEstimate LevelMean(IntervalValue value, size_t most) const;
  int Level() const;
  int Needed(double demand, double per_worker, double variation, double at, double target) const;
  Figures Measure() const;
  bool Starving(const Figures& f) const;
  AutoscaleDecision Decide(const FleetObservation& seen, const Figures& f);
  AutoscaleDecision Grow(const FleetObservation& seen, const Figures& f);
  // What follows where growing did not help the last time, or that is not sure yet; nothing: grow
  // on. `starved`: how long consumers wait, in words.
  std::optional<AutoscaleDecision> JudgeTrial(const FleetObservation& seen, const Figures& f,
                                              const std::string& starved);
  AutoscaleDecision Shrink(const FleetObservation& seen, const Figures& f);
  AutoscaleDecision UnderCeiling(const FleetObservation& seen);
  AutoscaleDecision Hold(FleetLimit limit, std::string reason) const;
  AutoscaleDecision To(int workers, double time_s, FleetLimit limit, const std::string& reason);

  AutoscaleOptions options_;
  std::deque<IntervalSample> samples_;
  int wanted_;
  double last_time_s_ = 0;
  bool seen_any_ = false;
  bool arriving_ = false;  // workers that were asked for are not there yet
  double asked_s_ = 0;     // when they were asked for
  double changed_s_;       // when they were all there; later samples are for this number of workers
  std::deque<double> startups_s_;
  double startup_s_;
  double shrunk_s_;  // when it last shrank
  // The demand that it grew for, if it did not shrink since; else endless.
  double grown_demand_ = std::numeric_limits<double>::infinity();
  double shrink_wait_s_ = 0;
  std::optional<Trial> trial_;
  std::optional<Ceiling> ceiling_;
  int shortage_ = 0;            // workers that starved consumers
  double shortage_demand_ = 0;  // the demand at that time
};

}  // namespace headrace::reader
