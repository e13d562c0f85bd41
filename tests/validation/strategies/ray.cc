// Ray Data's throughput solver: T is the least of (cores over the sum of core reservations times
// task time), (memory over the same of memory) and what capped operators can do; tasks are
// T times the task time. Every task reserves one core, and the number of tasks is never lowered.
#include <algorithm>
#include <cmath>
#include <limits>

#include "tests/validation/strategy.h"

namespace headrace::validation {
namespace {

Choice SolveRay(const analysis::RunView& run, const Allowed& allowed, const Measure&) {
  const std::vector<StageCost> costs = CostsOf(run);
  Choice choice = AsRecorded(run);
  double cores = 0, memory = 0, rate = std::numeric_limits<double>::infinity();
  for (const StageCost& cost : costs) {
    cores += cost.wall_s;
    memory += cost.bytes * cost.wall_s;
    if (cost.sequential && cost.wall_s > 0) rate = std::min(rate, 1 / cost.wall_s);
  }
  if (cores > 0) rate = std::min(rate, allowed.cores / cores);
  if (memory > 0) rate = std::min(rate, allowed.memory_bytes / memory);
  for (size_t s = 0; s < costs.size(); ++s) {
    if (costs[s].sequential || !std::isfinite(rate)) continue;
    const int tasks = static_cast<int>(std::ceil(rate * costs[s].wall_s - 1e-9));
    choice.threads[s] = std::max(choice.threads[s], std::clamp(tasks, 1, allowed.most_threads));
  }
  return choice;
}

}  // namespace

Strategy Ray() { return {"Ray Data closed form", SolveRay}; }

}  // namespace headrace::validation
