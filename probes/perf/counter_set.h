// CounterSet: what the counter probes count on this CPU, and what is computed from it.
#pragma once
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "probes/perf/availability.h"
#include "probes/perf/counting.h"
#include "probes/probe.h"

namespace headrace::probes::perf {

// A ratio of sums of events: only where all of them counted in one group.
struct DerivedMetric {
  std::string metric;  // of the list of metrics
  struct Term {
    std::string event;
    double weight = 1;
  };
  std::vector<Term> over, under;
};

struct CounterSet {
  // Events are named by the metric they give, without "_count": "llc_misses". Others serve only the
  // derived metrics.
  WishedGroup base;
  std::vector<WishedGroup> rotated;
  std::vector<DerivedMetric> derived;
  std::string cpu;  // whose events these are, in words
};

// Of the CPU this runs on; the kernel's generic events where the catalogue does not know it.
CounterSet CounterSetOfThisCpu(const Host& host);
CounterSet GenericCounterSet();

// Adds what is known: each event's scaled count, from the group that counted it most, and the
// derived metrics of the groups that were read in this interval. `labels` are of the owner.
void EmitCounters(const EventPlan& plan, const CounterSet& set, const Totals& totals,
                  const Labels& labels, Sink& sink);

// "cycles, instructions, ...; not to be had: llc_misses (reason)".
Availability Summarise(const EventPlan& plan, const CounterSet& set);

}  // namespace headrace::probes::perf
