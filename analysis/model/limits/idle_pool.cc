// A pool that is asked for too little: the trainer waits for the results of the calls under way,
// and then computes, while workers have nothing to do. More or faster workers gain little; asking
// for results ahead of the one that is taken lets them work meanwhile.
#include <fmt/format.h>

#include <algorithm>

#include "analysis/model/limits/limit_kind.h"
#include "analysis/run/known_loaders.h"
#include "analysis/thresholds.h"
#include "base/units.h"

namespace headrace::analysis {
namespace {

class IdlePool final : public LimitKind {
 public:
  IdlePool() : LimitKind("idle pool", 54) {}

  void AddRows(const PipelineModel& model, const Demands& demands, const Settings& settings,
               std::vector<Limit>* rows) const override {
    if (!model.idle_pool()) return;
    const auto& [s, idle_ratio, at_once] = *model.idle_pool();
    if (settings.parallelism[s] < 1) return;
    // At best the workers never wait for a call.
    const double best_s =
        std::max(demands.consumer_s, demands.stage_s[s] / settings.parallelism[s]);
    const double late_s = std::max(0.0, demands.consumer_s + demands.stage_s[s] / at_once - best_s);
    rows->push_back({this, s, name(), BoundOf(1, best_s + demands.asks_late * late_s)});
  }

  std::string Describe(const Limit& /*limit*/) const override {
    return "too few calls ahead of the trainer";
  }
  std::string SizedName(const PipelineModel& /*model*/, const Limit& limit) const override {
    return Describe(limit);
  }
  std::string Because(const PipelineModel& model, const Limit& limit,
                      double /*used_ratio*/) const override {
    const auto& [s, idle_ratio, at_once] = *model.idle_pool();
    const StageModel& stage = model.stages()[s];
    return fmt::format(
        "{} of {} have nothing to do for {} of their time, while the trainer waits {} of its step "
        "for their results: {} at most",
        WorkersOfStage(model.run(), stage.name, stage.parallelism), stage.name,
        FormatPercent(idle_ratio), FormatPercent(model.stall_ratio()),
        FormatRate(limit.bound, "batches"));
  }
  std::string WithoutSetting(const PipelineModel& /*model*/, const Limit& /*limit*/,
                             const std::string& /*culprit*/) const override {
    return "Ask the pool for results ahead of the one that is taken (submit, apply_async, imap): "
           "at least as many as it has workers, and one more.";
  }
  std::string Recommended(const PipelineModel& /*model*/, const Limit& /*limit*/) const override {
    return "R33";
  }
  std::string ResourceClass(const PipelineModel& /*model*/, const Limit& /*limit*/) const override {
    return std::string(kStageLimit);
  }

  std::optional<size_t> StageOf(const Limit& limit) const override { return limit.index; }
  std::optional<size_t> Culprit(const PipelineModel& model, const Limit& limit) const override {
    return LargestOf(model.stages()[limit.index].operators, OperatorSeconds(model.demands()));
  }

  Relief Relieve(const PipelineModel& /*model*/, const Variant& at, const Limit& limit,
                 Step step) const override {
    const double left = FactorOf(step);
    Relief relief{
        at, fmt::format("{:.0f} % less time in which its workers have no call", 100 * (1 - left))};
    relief.variant.scales.push_back({Scaled::kAskedLate, limit.index, left});
    return relief;
  }
  bool simulated() const override { return false; }
  double prediction_error() const override { return kOrderError; }
};

HR_LIMIT(IdlePool);

}  // namespace
}  // namespace headrace::analysis
