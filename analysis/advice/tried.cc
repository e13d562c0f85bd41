#include "analysis/advice/tried.h"

#include <fmt/format.h>

namespace headrace::analysis {
namespace {

using Knobs = std::map<std::string, std::string>;

// What the plan needs more than threads and queues, a run's knobs do not show.
bool IsOfKnobs(const RunView& run, const Allocation& plan) {
  return !plan.changes.empty() && plan.caches.empty() && !run.tried.empty() &&
         run.tried.front().run_id == run.run.run_id;
}

Knobs KnobsOf(const RunView& run, const Allocation& plan) {
  Knobs knobs = run.tried.front().knobs;
  for (const Change& change : plan.changes) knobs[change.knob] = std::to_string(change.to);
  return knobs;
}

// Of B over A, as of A over B.
double Inverse(double gain) { return 1 / (1 + gain) - 1; }

MeasuredPlan FromBToA(MeasuredPlan measured, const std::string& verdict) {
  measured.gain = Inverse(measured.gain);
  const Real low = measured.low, high = measured.high;
  measured.low.reset();
  measured.high.reset();
  if (high && *high > -1) measured.low = Inverse(*high);
  if (low && *low > -1) measured.high = Inverse(*low);
  if (verdict == "slower") measured.outcome = MeasuredPlan::Outcome::kFaster;
  if (verdict == "faster") measured.outcome = MeasuredPlan::Outcome::kNotFaster;
  return measured;
}

}  // namespace

std::optional<Tried> TriedBefore(const RunView& run, const Allocation& plan) {
  if (!IsOfKnobs(run, plan)) return std::nullopt;
  const TriedRow& own = run.tried.front();
  if (!(own.rows_per_s > 0)) return std::nullopt;
  const Knobs wanted = KnobsOf(run, plan);
  for (const TriedRow& other : run.tried) {
    if (other.run_id == own.run_id || other.knobs != wanted) continue;
    const double gain = other.rows_per_s / own.rows_per_s - 1;
    return Tried{other.run_id, gain, gain < plan.gain_interval.low};
  }
  return std::nullopt;
}

std::string ToText(const Tried& tried) {
  return fmt::format("Run {} had these settings and brought {:+.0f} %.", tried.run_id,
                     100 * tried.gain);
}

std::optional<MeasuredPlan> MeasuredBefore(const RunView& run, const Allocation& plan) {
  if (!IsOfKnobs(run, plan)) return std::nullopt;
  const Knobs& own = run.tried.front().knobs;
  const Knobs wanted = KnobsOf(run, plan);
  for (const MeasuredRow& row : run.measured) {
    MeasuredPlan measured{MeasuredPlan::Outcome::kCannotTell,
                          row.comparison_id,
                          row.pairs_count,
                          row.gain,
                          row.low,
                          row.high};
    if (row.verdict == "faster") measured.outcome = MeasuredPlan::Outcome::kFaster;
    if (row.verdict == "slower" || row.verdict == "same")
      measured.outcome = MeasuredPlan::Outcome::kNotFaster;
    if (row.a == own && row.b == wanted) return measured;
    if (row.b == own && row.a == wanted) return FromBToA(measured, row.verdict);
  }
  return std::nullopt;
}

std::string ToText(const MeasuredPlan& measured) {
  std::string interval;
  if (measured.low && measured.high)
    interval = fmt::format(" [{:.0f}, {:.0f}]", 100 * *measured.low, 100 * *measured.high);
  return fmt::format("{:+.0f} %{} in {} pair{} of runs (comparison {})", 100 * measured.gain,
                     interval, measured.pairs_count, measured.pairs_count == 1 ? "" : "s",
                     measured.comparison_id);
}

std::string WhatWasTried(const RunView& run, const Allocation& plan) {
  if (const auto measured = MeasuredBefore(run, plan)) return ToText(*measured) + ".";
  const std::optional<Tried> tried = TriedBefore(run, plan);
  return tried && tried->fell_short ? ToText(*tried) : "";
}

}  // namespace headrace::analysis
