#include "analysis/outside/compute_place.h"

#include "analysis/outside/native_place.h"
#include "analysis/outside/python_places.h"
#include "analysis/thresholds.h"

namespace headrace::analysis {

std::string ComputePlace(const RunView& run, const Outside& outside) {
  const OutsideLimit limit = outside.findings[0].limit;
  const OutsideUnit& unit = outside.units[outside.culprit];
  if (limit == OutsideLimit::kConsumer || limit == OutsideLimit::kAlone) {
    const UnitShares& own = outside.units[0].shares;
    const bool is_seen =
        outside.OwnTimes() || outside.is_step_elsewhere || own.on_cpu < kUnpicklerComputes;
    return is_seen ? "" : PlaceOnCpu(run, outside, outside.units[0]).value_or("");
  }
  if (outside.culprit == 0 ||
      (limit != OutsideLimit::kProducers && limit != OutsideLimit::kCores)) {
    return "";
  }
  if (outside.workers && outside.workers->place) return outside.workers->place->name;
  if (unit.kind != outside.units[0].kind) {
    const auto place = PlaceOfFeeders(run, outside.kinds[unit.kind].process_ids,
                                      unit.shares.on_cpu > kUnpicklesTasks);
    if (place) return place->name;
  } else if (outside.goroutines && !outside.goroutines->busiest.empty()) {
    const Goroutines& seen = *outside.goroutines;
    return seen.place.empty() ? seen.busiest : seen.busiest + ", " + seen.place;
  } else if (outside.home_activity &&
             outside.home_activity->Others(Activity::kWorks) >= kThreadsAtOneThing) {
    return outside.home_activity->places[static_cast<size_t>(Activity::kWorks)];
  }
  return PlaceOnCpu(run, outside, unit).value_or("");
}

}  // namespace headrace::analysis
