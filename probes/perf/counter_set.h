// CounterSet: what the counter probes count on this processor, and how it becomes metrics.
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

// Adds what is known: each word's scaled count, from the group that counted it most, and what the
// formulas make of the groups whose turn ended in this reading. `labels` say whose counts they are.
void EmitCounters(const EventPlan& plan, const CounterSet& set, const Totals& totals,
                  const Labels& labels, Sink& sink);

// What counts, and what does not and why.
Availability Summarise(const EventPlan& plan, const CounterSet& set);

// Tries the set on this machine, which takes some 20 ms; what worked is not tried again.
EventPlan PlanOfThisMachine(const Host& host, const CounterSet& set);

}  // namespace headrace::probes::perf
