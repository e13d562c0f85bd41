#include "analysis/run/pauses.h"

#include "analysis/thresholds.h"

namespace headrace::analysis {

std::optional<Pauses> FindPauses(const RunView& run, int64_t starts) {
  Pauses pauses;
  for (const StepTimeRow& row : run.step_times) pauses.steps += row.steps_count;
  if (static_cast<double>(pauses.steps) < kFewestStepsOfPauses) return std::nullopt;
  int64_t below = 0;
  for (const StepTimeRow& row : run.step_times) {
    below += row.steps_count;
    if (2 * below < pauses.steps) continue;
    pauses.usual_s = static_cast<double>(row.step_ns) * 1e-9;
    break;
  }
  double all_s = 0, between_s = 0, longer_s = 0;
  for (const StepTimeRow& row : run.step_times) {
    const double step_s = static_cast<double>(row.step_ns) * 1e-9;
    const auto count = static_cast<double>(row.steps_count);
    all_s += count * step_s;
    if (step_s > kLongStep * pauses.usual_s) {
      pauses.long_steps += row.steps_count;
      longer_s += count * (step_s - pauses.usual_s);
    } else if (step_s > pauses.usual_s) {
      between_s += count * (step_s - pauses.usual_s);
    }
  }
  const auto long_steps = static_cast<double>(pauses.long_steps);
  const double wait_s = static_cast<double>(run.steps.wait_ns) * 1e-9;
  if (long_steps < kFewestPauses + 2 * static_cast<double>(starts) ||
      pauses.share() > kMostLongSteps || longer_s < kPausesMatter * all_s ||
      between_s > kLongStepsApart * longer_s || wait_s < kPausesAreWaits * longer_s) {
    return std::nullopt;
  }
  pauses.wait_s = longer_s / long_steps;
  return pauses;
}

}  // namespace headrace::analysis
