// R33: results of a pool that are asked for ahead of the one that is taken.
#include <fmt/format.h>

#include "analysis/advice/recommendations.h"
#include "analysis/run/known_loaders.h"
#include "analysis/thresholds.h"
#include "base/units.h"

namespace headrace::analysis {
namespace {

Recommendation AskAhead(const Evidence& e) {
  if (!e.model().idle_pool()) {
    return DoesNotFire("no pool was seen whose workers have nothing to do while the trainer waits");
  }
  const auto& [s, idle_ratio, at_once] = *e.model().idle_pool();
  const StageModel& stage = e.model().stages()[s];
  const auto left = [&, s = s](double part) {
    Variant change = e.Now();
    change.scales.push_back({Scaled::kAskedLate, s, part});
    return change;
  };
  return IfWorthwhile(
      e, e.Predict(left(kAsksLess), left(0), left(0)),
      fmt::format("{} of {} have nothing to do for {} of their time, and work at {:.1f} calls at "
                  "once while the trainer waits",
                  WorkersOfStage(e.run(), stage.name, stage.parallelism), stage.name,
                  FormatPercent(idle_ratio), at_once),
      "ask for results ahead of the one that is taken (submit, apply_async, imap): at least as "
      "many as the pool has workers, and one more");
}

HR_RECOMMENDATION(33, "ask a pool for results ahead", "", AskAhead);

}  // namespace
}  // namespace headrace::analysis
