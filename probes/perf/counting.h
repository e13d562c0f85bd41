// Counts threads: the base group all the time, the other groups one at a time, in turns. What a
// group counted in its turn is scaled, interval by interval, to all the time that its thread ran;
// for intervals in which it never counted, nothing is made up.
//
// Not thread safe. The backend and the plan must outlive the objects that use them.
#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "probes/perf/availability.h"
#include "probes/perf/backend.h"
#include "probes/perf/group.h"

namespace headrace::probes::perf {

// Sums of one group over any number of threads.
struct GroupTotals {
  std::vector<double> scaled;  // by event, since the start
  double enabled_ns = 0;       // time the threads ran ...
  double running_ns = 0;       // ... and of that, time the group counted
  // The last turn with counts: the group's counts, and the base group's in exactly the same time,
  // so that ratios between them are exact.
  std::vector<double> turn, turn_base;
  bool fresh = false;  // that turn ended in the present reading

  bool known() const { return running_ns > 0; }
  // Share of the threads' time in which the group counted; in (0, 1].
  double running_ratio() const;
};
using Totals = std::vector<GroupTotals>;  // by group of the plan
Totals MakeTotals(const EventPlan& plan);
// Call before the readings of one interval.
void BeginInterval(Totals* totals);

// What one group counted for one thread or one operator, and that is not yet in the totals.
class Turn {
 public:
  explicit Turn(size_t num_events = 0, size_t num_base = 0)
      : counts_(num_events, 0), base_(num_base, 0) {}
  // Time in which the base group counted, whether or not this group did.
  void Elapsed(double enabled_ns) { enabled_ns_ += enabled_ns; }
  // What this group counted, and the base group (empty: this is the base group) meanwhile.
  void Counted(std::span<const double> counts, double running_ns, std::span<const double> base,
               double base_running_ns);
  // Moves it to `sums`, scaled to the elapsed time. Does nothing before the group has counted for
  // `least_running_ns`, unless it counted all the time, because a shorter turn is too unreliable.
  void Settle(double least_running_ns, GroupTotals* sums);

 private:
  std::vector<double> counts_, base_;
  double enabled_ns_ = 0, running_ns_ = 0, base_running_ns_ = 0;
};

struct CountingOptions {
  // See Turn::Settle.
  uint64_t least_running_ns = 1'000'000;
  int most_reopens = 3;  // how often a base group that lost its place on the PMU is opened again
};

// The groups of one thread (and, with inherit, of the threads it starts).
class ThreadCounters {
 public:
  using Options = CountingOptions;
  ThreadCounters(PerfBackend& backend, const EventPlan& plan, Options options = {});
  ThreadCounters(ThreadCounters&&) = default;
  ThreadCounters& operator=(ThreadCounters&&) = default;

  // Opens and starts the base group and, unless `base_only`, opens all others, which do not count
  // yet. Returns 0 or an errno; a rotated group that is refused is left out.
  int Open(const OpenRequest& where, bool base_only);
  // Starts the turn of group `active` of the plan; 0: of none.
  void Rotate(size_t active);
  // Adds what was counted since the last time. False when nothing will be counted any more: the
  // PMU took the base group's place for good.
  bool Read(Totals* totals);
  void Close();

  int64_t tid() const { return where_.tid; }
  size_t num_handles() const;
  int reopens() const { return reopens_; }

 private:
  bool ReadGroup(size_t index, GroupDelta* delta);

  PerfBackend* backend_;
  const EventPlan* plan_;
  Options options_;
  OpenRequest where_;
  std::vector<CounterGroup> groups_;
  std::vector<Turn> pending_;
  size_t active_ = 0;
  int reopens_ = 0;
};

}  // namespace headrace::probes::perf
