// CounterSet: the events that the counter probes count on this processor, and how they become
// metrics.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "probes/perf/availability.h"
#include "probes/perf/catalogue.h"
#include "probes/perf/counting.h"
#include "probes/probe.h"

namespace headrace::probes::perf {

struct CounterSet {
  explicit CounterSet(const CpuFamily& family, std::optional<double> slots_per_cycle = {});
  static CounterSet OfThisMachine(const Host& host);

  const CpuFamily* family;  // outlives the set
  std::optional<double> slots_per_cycle;
  WishedGroup base;  // cycles, instructions
  std::vector<WishedGroup> rotated;
};

// Adds to `sink` what is known: each word's scaled count, from the group that counted it longest,
// and the formulas' values for groups whose turn ended in this reading. `labels` say whose counts
// they are.
void EmitCounters(const EventPlan& plan, const CounterSet& set, const Totals& totals,
                  const Labels& labels, Sink& sink);

// Which events count, and which do not and why.
Availability Summarise(const EventPlan& plan, const CounterSet& set);

// Tries the set on this machine, which takes about 20 ms; a plan that worked is remembered.
EventPlan PlanOfThisMachine(const Host& host, const CounterSet& set);

}  // namespace headrace::probes::perf
