// Plumber's linear program (Kuchnik et al., MLSys 2022): maximise the least r_i * theta_i with the
// sum of theta at most the cores and theta at most 1 for sequential stages, where r_i counts CPU
// time alone; then theta is rounded up. As published the bound of the disk is computed and left out
// of the objective; repaired, it caps the rate and the reading stage gets the threads that reading
// at that rate takes.
#include <algorithm>
#include <cmath>
#include <limits>

#include "tests/validation/strategy.h"

namespace headrace::validation {
namespace {

double DiskBound(const analysis::RunView& run) {
  double bound = std::numeric_limits<double>::infinity();
  for (const analysis::ResourceRow& row : run.resources) {
    if (row.kind != "device" || row.hold_ns <= 0) continue;
    const double hold_s =
        static_cast<double>(row.hold_ns) * 1e-9 / static_cast<double>(run.steps.steps_count);
    bound = std::min(bound, static_cast<double>(row.servers_count) / hold_s);
  }
  return bound;
}

Choice Solve(const analysis::RunView& run, const Allowed& allowed, bool repaired) {
  const std::vector<StageCost> costs = CostsOf(run);
  Choice choice = AsRecorded(run);
  double sum = 0, rate = std::numeric_limits<double>::infinity();
  for (const StageCost& cost : costs) {
    sum += cost.cpu_s;
    if (cost.sequential && cost.cpu_s > 0) rate = std::min(rate, 1 / cost.cpu_s);
  }
  if (sum > 0) rate = std::min(rate, allowed.cores / sum);
  if (repaired) rate = std::min(rate, DiskBound(run));
  for (size_t s = 0; s < costs.size(); ++s) {
    if (costs[s].sequential) continue;
    const double each =
        repaired && costs[s].device_s > 0 ? costs[s].cpu_s + costs[s].device_s : costs[s].cpu_s;
    const double threads = std::isfinite(rate) ? std::ceil(rate * each - 1e-9) : 1;
    choice.threads[s] = std::clamp(static_cast<int>(threads), 1, allowed.most_threads);
  }
  return choice;
}

}  // namespace

Strategy Plumber(bool repaired) {
  return {repaired ? "Plumber LP, IO repaired" : "Plumber LP, as published",
          [repaired](const analysis::RunView& run, const Allowed& allowed, const Measure&) {
            return Solve(run, allowed, repaired);
          }};
}

}  // namespace headrace::validation
