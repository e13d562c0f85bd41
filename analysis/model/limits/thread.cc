// The consumer's thread, where it loads and computes in turn: a loader without workers.
#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <string_view>

#include "analysis/model/limits/limit_kind.h"
#include "analysis/thresholds.h"
#include "base/units.h"

namespace headrace::analysis {
namespace {

class Thread final : public LimitKind {
  // Whether workers make the batches, and what their taking costs is left.
  static bool StaysThere(const PipelineModel& model) {
    return std::any_of(model.stages().begin(), model.stages().end(),
                       [](const StageModel& stage) { return stage.stays_on_consumer; });
  }

 public:
  Thread() : LimitKind(std::string(kThreadLimit), 60) {}

  void AddRows(const PipelineModel& model, const Demands& demands, const Settings& settings,
               std::vector<Limit>* rows) const override {
    if (!model.loads_on_consumer()) return;
    const double loads_s = model.OnConsumers(settings, demands);
    rows->push_back({this, 0, name(),
                     loads_s > 0 ? BoundOf(1, loads_s + demands.consumer_s)
                                 : std::numeric_limits<double>::infinity()});
  }

  std::string Describe(const Limit& /*limit*/) const override {
    return "the thread that loads and computes in turn";
  }
  std::string ShortName(const Limit& /*limit*/) const override {
    return "the trainer's own thread";
  }
  std::string SizedName(const PipelineModel& /*model*/, const Limit& limit) const override {
    return limit.name;
  }
  std::string Because(const PipelineModel& model, const Limit& limit,
                      double /*used_ratio*/) const override {
    if (StaysThere(model)) {
      const int ranks = model.consumers();
      return fmt::format(
          "the trainer's thread takes {} per batch to receive it and {} to compute: {} at most",
          FormatDuration(model.OnConsumers(model.current(), model.demands()) * ranks * 1e9),
          FormatDuration(model.demands().consumer_s * ranks * 1e9),
          FormatRate(limit.bound, "batches"));
    }
    return fmt::format(
        "one thread loads and computes in turn, and loads {} of the time: {} at most",
        FormatPercent(model.stall_ratio()), FormatRate(limit.bound, "batches"));
  }
  std::string WithoutSetting(const PipelineModel& model, const Limit& /*limit*/,
                             const std::string& culprit) const override {
    if (StaysThere(model)) {
      return fmt::format("More workers do not help. Make {} cheaper.",
                         culprit.empty() ? "what the trainer's thread does for a batch" : culprit);
    }
    const std::string_view little = "A worker beside the trainer gains less than 3 %.";
    if (model.StepIsLarger()) return fmt::format("{} {}", little, kOnlyTheStep);
    return fmt::format("{} Make {} cheaper.", little, culprit.empty() ? "the loading" : culprit);
  }
  std::string WhyUnlimited(const PipelineModel& /*model*/) const override {
    return "no stage runs on the trainer's thread";
  }
  std::string ResourceClass(const PipelineModel& /*model*/, const Limit& /*limit*/) const override {
    return std::string(kStageLimit);
  }

  std::vector<size_t> StagesAt(const PipelineModel& model, const Limit& /*limit*/) const override {
    std::vector<size_t> stages;
    for (size_t s = 0; s < model.stages().size(); ++s) {
      if (model.stages()[s].on_consumer) stages.push_back(s);
    }
    return stages;
  }
  bool AtConsumer() const override { return true; }
  // Workers that are started again and again fill the cores with it.
  bool Explains(const PipelineModel& model, const Demands& demands, const Limit& limit,
                const Limit& other) const override {
    const double other_s = demands.unattributed_cpu_s - demands.consumer_cpu_s;
    return other.Is(kCoresLimit) && limit.bound < kStartsExplain * other.bound &&
           StartsWorkersAgain(model) && other_s > kStartsFillCores * demands.cpu_s;
  }
  std::optional<size_t> Culprit(const PipelineModel& model, const Limit& limit) const override {
    std::vector<size_t> there;
    for (const size_t s : StagesAt(model, limit)) {
      const std::vector<size_t>& operators = model.stages()[s].operators;
      there.insert(there.end(), operators.begin(), operators.end());
    }
    return LargestOf(there, OperatorSeconds(model.demands()));
  }

  Relief Relieve(const PipelineModel& model, const Variant& at, const Limit& limit,
                 Step /*step*/) const override {
    if (StaysThere(model)) {
      Relief relief = {at, "half as much work on the trainer's thread for each batch"};
      for (const size_t s : StagesAt(model, limit)) {
        relief.variant.scales.push_back({Scaled::kStage, s, 0.5});
      }
      return relief;
    }
    Relief relief{at, "a worker that loads while the trainer computes"};
    for (int& threads : relief.variant.settings.parallelism) threads = std::max(1, threads);
    return relief;
  }
  std::string Recommended(const PipelineModel& model, const Limit& limit) const override {
    return RuleOfReceiving(model, Culprit(model, limit));
  }
  bool ShowsAt(const PipelineModel& model, const Limit& /*limit*/, size_t stage) const override {
    return model.stages()[stage].on_consumer;
  }
};

HR_LIMIT(Thread);

}  // namespace
}  // namespace headrace::analysis
