// R29: workers of one loader that have unequal work.
#include <fmt/format.h>

#include "analysis/advice/recommendations.h"
#include "analysis/thresholds.h"

namespace headrace::analysis {
namespace {

Recommendation EqualWork(const Evidence& e) {
  if (!e.model().uneven()) {
    return DoesNotFire("no worker was seen whose batches take longer than those of the others");
  }
  const auto evened = [&](double left) {
    Variant change = e.Now();
    change.scales.push_back({Scaled::kUneven, e.model().uneven()->stage, left});
    return change;
  };
  if (e.model().uneven()->workers.idle > 0) {
    // They may be of another loader, of an evaluation say.
    return IfWorthwhile(e, e.Predict(evened(1), evened(0), evened(0)),
                        Words(e.model().uneven()->workers),
                        "divide the data into shards of equal size, one for each worker");
  }
  return IfWorthwhile(
      e, e.Predict(evened(kUnevenAfterMixing), evened(0), evened(0)),
      "batches are taken from the workers in turn, and " + Words(e.model().uneven()->workers),
      "give each worker as much work as the others: mix long and short items in "
      "every shard");
}

HR_RECOMMENDATION(29, "give the workers of a loader equal work", "", EqualWork);

}  // namespace
}  // namespace headrace::analysis
