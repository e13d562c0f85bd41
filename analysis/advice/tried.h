// What came of a plan that was tried before: a later page does not forget it.
#pragma once
#include <cstdint>
#include <optional>
#include <string>

#include "analysis/program/allocation.h"
#include "analysis/run/run_view.h"

namespace headrace::analysis {

struct Tried {
  int64_t run_id = 0;
  double gain = 0;          // of that run's rate over this one's, both from start to end
  bool fell_short = false;  // below the interval that the plan predicts
};

// The latest run of the same work in the database that had just the settings of the plan; empty:
// none, or the plan needs more than threads and queues.
std::optional<Tried> TriedBefore(const RunView& run, const Allocation& plan);

// "Run 7 had these settings and brought -3 %."
std::string ToText(const Tried& tried);

// A comparison of this run's settings with those of the plan.
struct MeasuredPlan {
  enum class Outcome : uint8_t { kFaster, kNotFaster, kCannotTell };
  Outcome outcome = Outcome::kCannotTell;
  int64_t comparison_id = 0, pairs_count = 0;
  double gain = 0;  // of the plan's rate over this run's
  Real low, high;   // its interval; empty: without a bound
};

// The latest one in the database. It decides where there is also a run that merely had these
// settings.
std::optional<MeasuredPlan> MeasuredBefore(const RunView& run, const Allocation& plan);

// "+96 % [90, 101] in 4 pairs of runs (comparison 3)"
std::string ToText(const MeasuredPlan& measured);

// A sentence of what was measured, else of a run that fell short of the plan; empty: neither.
std::string WhatWasTried(const RunView& run, const Allocation& plan);

}  // namespace headrace::analysis
