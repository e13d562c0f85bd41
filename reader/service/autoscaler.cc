#include "reader/service/autoscaler.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/error.h"
#include "base/units.h"

namespace headrace::reader {
namespace {

constexpr size_t kMostSamples = 80;
constexpr int kMostWorkers = 1'000'000;  // every number up to the wanted one is looked at
// Added workers that give less than half of what was expected did not help; more than a quarter for
// sure: they did.
constexpr double kHelped = 0.25, kUseless = 0.5;
constexpr double kWhole = 0.9;  // share of the workers wanted that says what all would
// Shrinking aims at less starvation than growing: the next few odd intervals are not to undo it.
constexpr double kSpare = 0.4;
constexpr double kReaches = 0.96;  // share of a ceiling that counts as reaching it
constexpr double kLeaves = 0.10;   // a rate this far from a ceiling is another
// Where the cautious end of what is needed is so small a share of what serves, a block of intervals
// is enough to see it, or as many as two start-ups take.
constexpr double kFarTooMany = 0.7;
constexpr double kStillThat = 0.85;  // of a demand: more than that is no other one
constexpr int kFarAtLeast = 3;       // workers too many: one or two of a few are no such case
// Expected share of its time that a consumer waits which takes 1 where `mean` comes, varying
// normally by `deviation`: E[max(0, 1 - S)].
double ExpectedStarved(double mean, double deviation) {
  if (deviation <= 0) return std::max(0.0, 1 - mean);
  const double z = (1 - mean) / deviation;
  const double density = std::exp(-z * z / 2) / std::sqrt(2 * M_PI);
  const double below = 0.5 * std::erfc(-z / std::sqrt(2.0));
  return std::max(0.0, (1 - mean) * below + deviation * density);
}

bool IsShare(const std::optional<double>& value) {
  return value && std::isfinite(*value) && *value >= 0 && *value <= 1;
}

void CheckOptions(const AutoscaleOptions& o) {
  const auto refuse = [](const char* what, const char* fix) {
    throw Error(ExitCode::kUsage, what, "autoscaler", fix);
  };
  if (o.least < 1 || o.least > o.most) {
    refuse("the bounds of the number of workers are not in order", "set 1 <= least <= most");
  }
  if (o.most > kMostWorkers) {
    refuse("more workers are allowed than can be looked at", "set most to a million or less");
  }
  if (!(o.starved_target > 0 && o.starved_target < o.starved_line && o.starved_line < 1)) {
    refuse("the lines for starvation are not in order",
           "set 0 < starved_target < starved_line < 1");
  }
  if (!(o.waste_line > 0 && o.waste_line < 1)) {
    refuse("the line for waste is not a share", "set 0 < waste_line < 1");
  }
  if (o.grow_intervals < 3 || o.shrink_intervals < o.grow_intervals ||
      o.patience_intervals < o.shrink_intervals) {
    refuse("the numbers of intervals to wait for are not in order",
           "set 3 <= grow_intervals <= shrink_intervals <= patience_intervals");
  }
  if (!(o.most_growth > 1) || !(o.startup_s >= 0) || !(o.stale_s >= 0)) {
    refuse("a factor or a time is out of range", "set most_growth > 1, startup_s and stale_s >= 0");
  }
  if (o.worker_price.has_value() != o.consumers_price.has_value() ||
      (o.worker_price && !(*o.worker_price >= 0 && *o.consumers_price > 0))) {
    refuse("a price alone says nothing", "set worker_price and consumers_price, or neither");
  }
}

std::string Workers(int count) { return fmt::format("{} worker{}", count, count == 1 ? "" : "s"); }
std::string Batches(double rate) { return FormatRate(rate, "batches"); }

}  // namespace

const char* Name(FleetLimit limit) {
  switch (limit) {
    case FleetLimit::kConsumers:
      return "consumers";
    case FleetLimit::kWorkers:
      return "workers";
    case FleetLimit::kUpstream:
      return "upstream";
    case FleetLimit::kDelivery:
      return "delivery";
    case FleetLimit::kBound:
      return "bound";
    case FleetLimit::kUnknown:
      break;
  }
  return "unknown";
}

// What the samples say.
struct Autoscaler::Figures {
  IntervalEstimate demand, per_worker, starved, waste;
  double variation = 0;  // of the rate per worker, as it is averaged over the workers there are
  double at = 0;         // those workers
  int needed = 0, needed_low = 0, needed_high = 0;
  int enough = 0;                                        // to shrink to
  bool may_rise_further = false, rise_is_known = false;  // of the demand: RiseOfDemand
};

Autoscaler::Autoscaler(const AutoscaleOptions& options, int workers)
    : options_(options),
      wanted_(workers),
      changed_s_(-std::numeric_limits<double>::infinity()),
      startup_s_(options.startup_s),
      shrunk_s_(-std::numeric_limits<double>::infinity()) {
  CheckOptions(options);
  wanted_ = std::clamp(workers, options.least, options.most);
}

void Autoscaler::Bound(int most) {
  options_.most = std::min(options_.most, std::max(1, most));
  options_.least = std::min(options_.least, options_.most);
  if (wanted_ <= options_.most) return;
  wanted_ = options_.most;
  arriving_ = false;  // they do not come
  trial_.reset();
}

// Takes what was seen into the samples; else says why not.
std::optional<std::string> Autoscaler::Accept(const FleetObservation& seen) {
  if (!std::isfinite(seen.time_s) || !(seen.seconds > 0) || !std::isfinite(seen.seconds)) {
    return "the interval has no length";
  }
  if (seen_any_ && seen.time_s <= last_time_s_) return "the interval is not after the last";
  last_time_s_ = seen.time_s;
  seen_any_ = true;
  const double stale = options_.stale_s > 0 ? options_.stale_s : 5 * seen.seconds;
  if (!samples_.empty() && seen.time_s - samples_.back().time_s > stale + seen.seconds) {
    samples_.clear();  // what it was like then says nothing of now
    trial_.reset();
    ceiling_.reset();
    changed_s_ = std::min(changed_s_, seen.time_s - seen.seconds);
  }
  if (!seen.batches || !std::isfinite(*seen.batches) || *seen.batches < 0) {
    return "not known how many batches consumers took";
  }
  if (!IsShare(seen.starved_ratio)) return "not known how long consumers waited";
  if (!IsShare(seen.waste_ratio)) return "not known how long workers were idle";
  if (!(seen.serving > 0) || !std::isfinite(seen.serving)) return "no worker served";
  if (seen.ready < 0 || seen.ready > kMostWorkers || seen.starting < 0) {
    return "not known how many workers there are";
  }
  samples_.push_back({seen.time_s, seen.serving, *seen.batches / seen.seconds, *seen.starved_ratio,
                      *seen.waste_ratio});
  if (samples_.size() > kMostSamples) samples_.pop_front();
  return std::nullopt;
}

// Whether what was asked for is there, and how long it took.
void Autoscaler::FollowStartup(const FleetObservation& seen) {
  if (!arriving_) {
    // Some workers failed and are being replaced, so observations meanwhile say little about the
    // whole. With many workers, a few of them are always being replaced.
    if (seen.starting > 0 && seen.ready < kWhole * wanted_) changed_s_ = seen.time_s;
    return;
  }
  const bool grew = seen.ready < wanted_ || seen.starting > 0;
  const double waited = seen.time_s - asked_s_;
  if (!grew && seen.ready == wanted_) {
    // Those that leave do so at once: only starting is learned from.
    if (shrunk_s_ != asked_s_) {
      startups_s_.push_back(waited);
      if (startups_s_.size() > 9) startups_s_.pop_front();
      startup_s_ = MedianOf({startups_s_.begin(), startups_s_.end()});
    }
    arriving_ = false;
    changed_s_ = seen.time_s;
  } else if (waited > 3 * std::max(startup_s_, options_.startup_s) + 2 * seen.seconds) {
    arriving_ = false;  // no more are waited for: those there are the fleet
    changed_s_ = seen.time_s;
  }
}

IntervalEstimate Autoscaler::LevelMean(IntervalValue value, size_t most) const {
  return MeanSince(samples_, value, changed_s_, most);
}

int Autoscaler::Level() const {
  int count = 0;
  for (auto it = samples_.rbegin(); it != samples_.rend() && it->time_s > changed_s_; ++it) ++count;
  return count;
}

// The fewest workers expected to leave consumers starved by at most the target; with prices those
// with the least cost per batch. `variation`: of the rate of `at` workers together.
int Autoscaler::Needed(double demand, double per_worker, double variation, double at,
                       double target) const {
  if (!(per_worker > 0)) return options_.most;
  const double least_worth = demand / per_worker;
  if (!(least_worth < options_.most * 4.0)) return options_.most;
  const auto starved = [&](int workers) {
    const double mean = workers / least_worth;
    return ExpectedStarved(mean, mean * variation * std::sqrt(at / workers));
  };
  const int first = std::clamp(static_cast<int>(least_worth * 0.5), 1, options_.most);
  int best = first;
  double least_cost = std::numeric_limits<double>::infinity();
  for (int workers = first; workers <= options_.most; ++workers) {
    const double wait = starved(workers);
    if (options_.worker_price) {
      const double cost =
          (*options_.consumers_price + workers * *options_.worker_price) / std::max(1e-9, 1 - wait);
      if (cost < least_cost) {
        least_cost = cost;
        best = workers;
      }
      if (workers > 4 * least_worth + 10) break;
    } else if (best = workers; wait <= target) {
      break;
    }
  }
  return std::max(best, options_.least);
}

Autoscaler::Figures Autoscaler::Measure() const {
  Figures f;
  f.demand =
      RecentMean(samples_, [](const IntervalSample& s) { return DemandOf(s.rate, s.starved); });
  if (const std::optional<DemandRise> rise = RiseOfDemand(samples_)) {
    f.may_rise_further = rise->is_young;
    f.rise_is_known = !f.may_rise_further;
    // Between the two: nothing is known of their deviation.
    if (f.rise_is_known) f.demand = {rise->demand, rise->half / ReachOf(2), 0, 2};
  }
  f.per_worker = RecentMean(
      samples_, [](const IntervalSample& s) { return CapacityOf(s.rate, s.waste) / s.workers; });
  const auto soon = static_cast<size_t>(options_.grow_intervals);
  f.starved = LevelMean([](const IntervalSample& s) { return s.starved; }, soon);
  f.waste = LevelMean([](const IntervalSample& s) { return s.waste; }, soon);
  for (int i = 0; i < f.per_worker.samples; ++i) f.at += samples_.rbegin()[i].workers;
  f.at /= std::max(1, f.per_worker.samples);
  if (f.per_worker.mean > 0) f.variation = f.per_worker.deviation / f.per_worker.mean;
  const double d = ReachOf(f.demand.samples) * f.demand.error;
  const double r = ReachOf(f.per_worker.samples) * f.per_worker.error;
  const double target = options_.starved_target;
  const double least = f.per_worker.mean - r;  // may be below 0: as many as allowed
  f.needed = Needed(f.demand.mean, f.per_worker.mean, f.variation, f.at, target);
  f.needed_low =
      Needed(std::max(0.0, f.demand.mean - d), f.per_worker.mean + r, f.variation, f.at, target);
  f.needed_high = Needed(f.demand.mean + d, least, f.variation, f.at, target);
  f.enough = Needed(f.demand.mean + d, least, f.variation, f.at, kSpare * target);
  return f;
}

AutoscaleDecision Autoscaler::Hold(FleetLimit limit, std::string reason) const {
  AutoscaleDecision decision;
  decision.wanted = wanted_;
  decision.limit = limit;
  decision.reason = std::move(reason);
  return decision;
}

AutoscaleDecision Autoscaler::To(int workers, double time_s, FleetLimit limit,
                                 const std::string& reason) {
  const int to = std::clamp(workers, options_.least, options_.most);
  const int change = to - wanted_;
  if (change < 0) shrunk_s_ = time_s;
  if (change < 0) grown_demand_ = HUGE_VAL;
  wanted_ = to;
  if (change != 0) {
    arriving_ = true;
    asked_s_ = time_s;
  }
  AutoscaleDecision decision = Hold(limit, reason);
  decision.change = change;
  return decision;
}

AutoscaleDecision Autoscaler::Observe(const FleetObservation& seen) {
  const std::optional<std::string> refused = Accept(seen);
  if (seen_any_ && last_time_s_ == seen.time_s) FollowStartup(seen);
  if (refused) return Hold(FleetLimit::kUnknown, *refused + ": held");
  const Figures f = Measure();
  AutoscaleDecision decision = Decide(seen, f);
  if (f.demand.samples >= 2 && f.per_worker.mean > 0) {
    const auto rate = [](const IntervalEstimate& e) {
      const double half = ReachOf(e.samples) * e.error;
      return RateEstimate{e.mean, std::max(0.0, e.mean - half), e.mean + half, e.samples};
    };
    decision.needed = f.needed;
    decision.needed_low = f.needed_low;
    decision.needed_high = f.needed_high;
    decision.demand = rate(f.demand);
    decision.rate_per_worker = rate(f.per_worker);
  }
  return decision;
}

AutoscaleDecision Autoscaler::Decide(const FleetObservation& seen, const Figures& f) {
  if (arriving_) {
    return Hold(
        FleetLimit::kUnknown,
        fmt::format("{} of {} serve, {} start: held until they do (start-up {})", seen.ready,
                    Workers(wanted_), seen.starting, FormatDuration(startup_s_ * 1e9)));
  }
  const int level = Level();
  if (level < options_.grow_intervals) {
    if (seen.starting > 0) {
      return Hold(FleetLimit::kUnknown, fmt::format("{} of {} serve, {} start: held", seen.ready,
                                                    Workers(wanted_), seen.starting));
    }
    return Hold(FleetLimit::kUnknown, fmt::format("{} of {} intervals seen with {}: held", level,
                                                  options_.grow_intervals, Workers(seen.ready)));
  }
  if (ceiling_) return UnderCeiling(seen);
  if (Starving(f)) {
    if (f.may_rise_further && seen.ready < options_.most) {
      return Hold(FleetLimit::kUnknown, fmt::format("consumers wait {} of their time; their "
                                                    "demand may still be rising: held",
                                                    FormatPercent(f.starved.mean)));
    }
    return Grow(seen, f);
  }
  if (f.starved.mean <= options_.starved_line) trial_.reset();
  if (f.starved.mean <= options_.starved_target && f.waste.mean > options_.waste_line) {
    return Shrink(seen, f);
  }
  return Hold(FleetLimit::kConsumers,
              fmt::format("consumers wait {} of their time, workers are idle {} of theirs",
                          FormatPercent(f.starved.mean), FormatPercent(f.waste.mean)));
}

// Few intervals say so by far, or many do.
bool Autoscaler::Starving(const Figures& f) const {
  const double line = options_.starved_line;
  if (f.starved.mean - ReachOf(f.starved.samples) * f.starved.error > line) return true;
  const auto many = static_cast<size_t>(options_.shrink_intervals);
  const IntervalEstimate longer =
      LevelMean([](const IntervalSample& s) { return s.starved; }, many);
  return longer.samples >= options_.shrink_intervals && longer.mean > line;
}

std::optional<AutoscaleDecision> Autoscaler::JudgeTrial(const FleetObservation& seen,
                                                        const Figures& f,
                                                        const std::string& starved) {
  if (!trial_) return std::nullopt;
  const IntervalEstimate rate =
      LevelMean([](const IntervalSample& s) { return s.rate; }, kMostSamples);
  const double could = std::min(f.demand.mean, trial_->per_worker * seen.serving);
  const double expected = could - trial_->rate.mean;
  if (expected > kMeansAlike * trial_->rate.mean) {
    const double helped = (rate.mean - trial_->rate.mean) / expected;
    const double error = 2 * std::hypot(rate.error, trial_->rate.error) / expected;
    const bool sure = helped - error > kHelped || helped + error < kUseless;
    if (!sure && rate.samples < options_.patience_intervals) {
      return Hold(
          FleetLimit::kUnknown,
          fmt::format("{}; whether {} instead of {} give more is not sure yet: {} against {}",
                      starved, Workers(seen.ready), trial_->workers, Batches(rate.mean),
                      Batches(trial_->rate.mean)));
    }
    if (sure ? helped + error < kUseless : helped < kUseless) {
      const bool before = trial_->rate.mean > kReaches * rate.mean;
      ceiling_ =
          Ceiling{rate.mean, rate.error, trial_->per_worker, before ? trial_->workers : seen.ready,
                  0,         false};
      trial_.reset();
      return UnderCeiling(seen);
    }
  }
  trial_.reset();
  return std::nullopt;
}

AutoscaleDecision Autoscaler::Grow(const FleetObservation& seen, const Figures& f) {
  const std::string starved =
      fmt::format("consumers wait {} of their time", FormatPercent(f.starved.mean));
  if (!(f.per_worker.mean > 0)) {
    return Hold(FleetLimit::kUpstream, starved + " and no worker delivers: more would not either");
  }
  if (seen.ready < wanted_ && f.needed <= wanted_) {  // to be replaced by who runs them
    return Hold(FleetLimit::kBound, fmt::format("{}; {} are wanted and {} serve", starved,
                                                Workers(wanted_), seen.ready));
  }
  if (f.needed <= seen.ready && f.waste.mean > options_.waste_line) {
    return Hold(FleetLimit::kDelivery,
                fmt::format("{} while workers are idle {} of theirs{}: the way between them limits",
                            starved, FormatPercent(f.waste.mean),
                            seen.buffered_batches
                                ? fmt::format(", {:.0f} batches waiting", *seen.buffered_batches)
                                : ""));
  }
  if (auto judged = JudgeTrial(seen, f, starved)) return *judged;
  if (seen.ready >= options_.most) {
    return Hold(FleetLimit::kBound, fmt::format("{}; {} are the most allowed and {} would do",
                                                starved, Workers(options_.most), f.needed));
  }
  // Taken back soon after shrinking, although the demand did not rise: the next time it waits
  // longer.
  const double wait = std::max(shrink_wait_s_, 2 * startup_s_);
  if (!f.rise_is_known &&
      seen.time_s - shrunk_s_ < 3 * wait + options_.patience_intervals * seen.seconds) {
    shrink_wait_s_ = std::min(2 * wait, 3600.0);
  }
  shortage_ = seen.ready;
  shortage_demand_ = grown_demand_ = f.demand.mean;
  const int most = static_cast<int>(std::min(seen.ready * options_.most_growth, 1e6));
  const int to =
      std::min({std::max(f.needed, seen.ready + 1), std::max(most, seen.ready + 1), options_.most});
  // Before a rise consumers took what they wanted, not what there was.
  const auto rate_of = [](const IntervalSample& s) { return s.rate; };
  trial_ =
      Trial{seen.ready, f.rise_is_known ? LevelMean(rate_of, 2) : RecentMean(samples_, rate_of),
            f.per_worker.mean};
  return To(to, seen.time_s, FleetLimit::kWorkers,
            fmt::format("{}: {} at {} a worker need {} (between {} and {})", starved,
                        Batches(f.demand.mean), Batches(f.per_worker.mean), Workers(f.needed),
                        f.needed_low, f.needed_high));
}

AutoscaleDecision Autoscaler::Shrink(const FleetObservation& seen, const Figures& f) {
  const std::string idle = fmt::format("workers are idle {} of their time, consumers wait {}",
                                       FormatPercent(f.waste.mean), FormatPercent(f.starved.mean));
  int to = f.enough;
  // A number that starved this demand once is not gone back to.
  if (f.demand.mean > kStillThat * shortage_demand_) to = std::max(to, shortage_ + 1);
  to = std::max(to, options_.least);
  // What it grew to for this demand is not taken back for a worker: that is within the error that
  // it grew by. Of fewer than five a worker is too much of them for that.
  const bool for_this = f.demand.mean > kStillThat * grown_demand_;
  const int least =
      for_this && seen.ready >= 5 ? std::max(2, seen.ready / 10) : std::max(1, seen.ready / 20);
  if (to > seen.ready - least) {
    return Hold(FleetLimit::kConsumers,
                fmt::format("{}; {} may be needed: held", idle, Workers(to)));
  }
  const double wait = std::max(shrink_wait_s_, 2 * startup_s_);
  const double starved =
      LevelMean([](const IntervalSample& s) { return s.starved; }, kMostSamples).mean;
  const bool is_far = to <= kFarTooMany * seen.ready && seen.ready - to >= kFarAtLeast;
  // What is given up takes a start-up to come back.
  const int startups = static_cast<int>(std::ceil(std::min(2 * startup_s_ / seen.seconds, 1e6)));
  const int enough = is_far ? std::clamp(startups, kIntervalBlock,
                                         std::max(kIntervalBlock, options_.shrink_intervals))
                            : options_.shrink_intervals;
  if (std::min({Level(), f.demand.samples, f.per_worker.samples}) < enough ||
      seen.time_s - changed_s_ < wait || starved > options_.starved_line) {
    return Hold(FleetLimit::kConsumers, idle + ": held until it has been so for longer");
  }
  return To(
      to, seen.time_s, FleetLimit::kConsumers,
      fmt::format("{}: {} at {} a worker need {} (between {} and {})", idle, Batches(f.demand.mean),
                  Batches(f.per_worker.mean), Workers(f.needed), f.needed_low, f.needed_high));
}

// Something shared lets `ceiling_->rate` through: looks for the fewest workers that reach it, and
// watches whether it is still so.
AutoscaleDecision Autoscaler::UnderCeiling(const FleetObservation& seen) {
  Ceiling& c = *ceiling_;
  const int level = Level();
  const IntervalEstimate rate =
      LevelMean([](const IntervalSample& s) { return s.rate; }, kMostSamples);
  const IntervalEstimate now = RecentMean(samples_, [](const IntervalSample& s) { return s.rate; });
  const std::string more =
      fmt::format("more workers do not give more than {}: what they share limits", Batches(c.rate));
  const double starved = LevelMean([](const IntervalSample& s) { return s.starved; },
                                   static_cast<size_t>(options_.shrink_intervals))
                             .mean;
  const double error = std::hypot(now.error, c.error);
  const bool above = now.mean > c.rate * (1 + kLeaves) + kMeansDiffer * error;
  const bool below = now.mean < c.rate * (1 - kLeaves) - kMeansDiffer * error;
  if ((starved <= options_.starved_target && level >= options_.shrink_intervals) || above ||
      (below && seen.ready >= c.reach)) {
    const std::string was = Batches(c.rate);
    ceiling_.reset();
    return Hold(FleetLimit::kUnknown, fmt::format("consumers get {} now, not {}: measured again",
                                                  Batches(now.mean), was));
  }
  if (c.settled || level < options_.shrink_intervals) return Hold(FleetLimit::kUpstream, more);
  if (seen.ready < c.reach) {  // fewer were tried
    const double share = rate.mean / c.rate, half = 2 * std::hypot(rate.error, c.error) / c.rate;
    const bool sure = share + half < kReaches || share - half > kReaches;
    if (!sure && level < options_.patience_intervals) return Hold(FleetLimit::kUpstream, more);
    if (share < kReaches) {
      c.too_few = seen.ready;
      return To(c.reach, seen.time_s, FleetLimit::kUpstream,
                fmt::format("{} give {} only, {} gave {}", Workers(seen.ready), Batches(rate.mean),
                            c.reach, Batches(c.rate)));
    }
    c.reach = seen.ready;
  } else if (c.too_few == 0) {
    c.rate = rate.mean;
    c.error = rate.error;
  }
  int next = static_cast<int>(std::ceil(0.6 * c.reach));
  if (c.too_few > 0) {
    next = (c.too_few + c.reach) / 2;
  } else if (c.per_worker > 0) {
    const int could = static_cast<int>(std::ceil(std::min(1.1 * c.rate / c.per_worker, 1e6)));
    if (could < c.reach) next = std::max(could, 1);
  }
  next = std::max({next, c.too_few + 1, options_.least});
  if (c.reach - next < std::max(1, c.reach / 10)) {
    c.settled = true;
    return Hold(FleetLimit::kUpstream, more);
  }
  return To(next, seen.time_s, FleetLimit::kUpstream,
            fmt::format("{}; tried with {} instead of {}", more, next, Workers(seen.ready)));
}

}  // namespace headrace::reader
