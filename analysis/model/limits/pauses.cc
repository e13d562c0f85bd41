// Pauses: those that make batches are fast enough on average, but stop now and then for longer than
// the batches made ahead last. What the trainer waits meanwhile is lost, unless more were ahead.
#include <fmt/format.h>

#include <algorithm>

#include "analysis/model/limits/limit_kind.h"
#include "analysis/thresholds.h"
#include "base/infinite.h"
#include "base/units.h"

namespace headrace::analysis {
namespace {

class PausesLimit final : public LimitKind {
 public:
  PausesLimit() : LimitKind("pauses", 52) {}

  void AddRows(const PipelineModel& model, const Demands& demands, const Settings& settings,
               std::vector<Limit>* rows) const override {
    if (!model.pauses()) return;
    const double lost_s = model.LostToPauses(settings, demands);
    const double step_s = demands.consumer_s + model.OnConsumers(settings, demands) + lost_s;
    rows->push_back({this, model.pauses()->stage, model.stages()[model.pauses()->stage].name,
                     lost_s > 0 ? BoundOf(1, step_s) : kInfinite});
  }

  std::string Describe(const Limit& limit) const override { return "pauses of " + limit.name; }
  std::string SizedName(const PipelineModel& /*model*/, const Limit& limit) const override {
    return Describe(limit);
  }
  std::string Because(const PipelineModel& model, const Limit& limit,
                      double /*used_ratio*/) const override {
    const Pauses& pauses = model.pauses()->pauses;
    return fmt::format(
        "in {} of {} steps the trainer waits {} for a batch, longer than the queue of {} lasts: {} "
        "at most",
        pauses.long_steps, pauses.steps, FormatDuration(pauses.wait_s * 1e9),
        model.current().queue_capacity[limit.index], FormatRate(limit.bound, "batches"));
  }
  std::string WithoutSetting(const PipelineModel& model, const Limit& limit,
                             const std::string& /*culprit*/) const override {
    return fmt::format("Shorten what stops {} now and then, or let it work further ahead.",
                       model.stages()[limit.index].name);
  }
  std::string WhyUnlimited(const PipelineModel& /*model*/) const override {
    return "the queue lasts over every pause";
  }
  std::string ResourceClass(const PipelineModel& /*model*/, const Limit& /*limit*/) const override {
    return std::string(kStageLimit);
  }

  std::optional<size_t> StageOf(const Limit& limit) const override { return limit.index; }
  std::optional<size_t> Culprit(const PipelineModel& model, const Limit& limit) const override {
    return LargestOf(model.stages()[limit.index].operators, OperatorSeconds(model.demands()));
  }

  Relief Relieve(const PipelineModel& model, const Variant& at, const Limit& limit,
                 Step /*step*/) const override {
    Relief relief{at, ""};
    int& queue = relief.variant.settings.queue_capacity[limit.index];
    const int longer = std::max(queue + 1, model.QueueOverPauses());
    relief.what = fmt::format("a queue of {} batches instead of {}", longer, queue);
    queue = longer;
    return relief;
  }
  bool simulated() const override { return false; }
  double prediction_error() const override { return kOrderError; }
};

HR_LIMIT(PausesLimit);

}  // namespace
}  // namespace headrace::analysis
