// The consumer: a step of it takes as long as it computes, whatever the pipeline does.
#include <fmt/format.h>

#include <algorithm>

#include "analysis/model/limits/limit_kind.h"
#include "analysis/run/counter_sums.h"
#include "analysis/thresholds.h"
#include "base/units.h"

namespace headrace::analysis {
namespace {

// Whether the step mostly waits for what may be no thread of its program: what it saves or reports
// to, or a device.
bool StepWaits(const RunView& run) {
  double step_ns = 0, waits_ns = 0;
  for (const OperatorRow& op : run.operators) {
    if (op.kind != "consumer") continue;
    step_ns += static_cast<double>(op.busy_ns);
    for (const char* cause : {"poll", "network", "storage"}) waits_ns += OffCpuNs(run, op, cause);
  }
  return step_ns > 0 && waits_ns >= kStepWaits * step_ns;
}

class Consumer final : public LimitKind {
 public:
  Consumer() : LimitKind(std::string(kConsumerLimit), 10) {}

  void AddRows(const PipelineModel& /*model*/, const Demands& demands, const Settings& /*settings*/,
               std::vector<Limit>* rows) const override {
    rows->push_back({this, 0, name(), BoundOf(1, demands.consumer_s)});
  }

  std::string Describe(const Limit& /*limit*/) const override { return "the trainer"; }
  std::string ShortName(const Limit& /*limit*/) const override { return "the trainer"; }
  std::string SizedName(const PipelineModel& /*model*/, const Limit& limit) const override {
    return limit.name;
  }
  std::string Because(const PipelineModel& model, const Limit& limit,
                      double /*used_ratio*/) const override {
    return fmt::format("the trainer computes {} per step: {} at most",
                       FormatDuration(model.demands().consumer_s * model.consumers() * 1e9),
                       FormatRate(limit.bound, "batches"));
  }
  std::string WithoutSetting(const PipelineModel& model, const Limit& /*limit*/,
                             const std::string& /*culprit*/) const override {
    return fmt::format("{} {}", kPipelineKeepsUp,
                       StepWaits(model.run()) ? "Only a step that computes or waits less is faster."
                                              : kOnlyTheStep);
  }
  std::string WhyUnlimited(const PipelineModel& /*model*/) const override {
    return "the trainer computes nothing";
  }

  bool AtConsumer() const override { return true; }
  // Where taking batches from workers is little beside its step, the step is the limit; so it is
  // where loading them itself takes next to nothing.
  bool Explains(const PipelineModel& model, const Demands& /*demands*/, const Limit& limit,
                const Limit& other) const override {
    const bool takes = std::any_of(model.stages().begin(), model.stages().end(),
                                   [](const StageModel& stage) { return stage.stays_on_consumer; });
    const double little = takes ? kTakingIsLittle : 1 / (1 - kSmallStall);
    return other.Is(kThreadLimit) && limit.bound < little * other.bound;
  }

  Relief Relieve(const PipelineModel& /*model*/, const Variant& at, const Limit& /*limit*/,
                 Step step) const override {
    return Faster(at, Scaled::kConsumer, 0, step);
  }
};

HR_LIMIT(Consumer);

}  // namespace
}  // namespace headrace::analysis
