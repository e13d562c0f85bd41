// R27: a pool of workers whose results pile up, as nothing bounds how many are under way. What it
// does ahead of the trainer takes cores from the trainer, and memory.
#include "analysis/model/running_ahead.h"

#include <fmt/format.h>

#include "analysis/advice/recommendations.h"
#include "analysis/thresholds.h"

namespace headrace::analysis {
namespace {

Recommendation BoundWhatIsAhead(const Evidence& e) {
  const PipelineModel& model = e.model();
  const std::string ahead = StageAhead(model);
  if (ahead.empty()) return DoesNotFire("no stage runs ahead of the trainer without a bound");
  // Others may take some of what it leaves; and who computes beside it computes faster without it.
  Variant least = e.Now(), bounded = e.Now();
  least.settings.cores += model.cores_ahead() / 2;
  bounded.settings.cores += model.cores_ahead();
  Variant most = bounded;
  most.scales.push_back({Scaled::kConsumer, 0, kAloneOnItsCore});
  return IfWorthwhile(
      e, e.Predict(least, bounded, most),
      fmt::format("{}; that takes {:.2f} cores", AheadWords(model), model.cores_ahead()),
      fmt::format("hand {} new work only as its results are taken, a few for each worker", ahead));
}

HR_RECOMMENDATION(27, "bound what runs ahead of the trainer", "", BoundWhatIsAhead);

}  // namespace
}  // namespace headrace::analysis
