// Python's interpreter, where the trainer's own step waits for it: another thread of its process
// runs Python code. The row is that of the trainer (bottleneck.cc); this kind has its words.
#include <fmt/format.h>

#include "analysis/model/limits/limit_kind.h"
#include "analysis/run/interpreter_waits.h"
#include "base/units.h"

namespace headrace::analysis {
namespace {

class HeldStep final : public LimitKind {
 public:
  HeldStep() : LimitKind(std::string(kHeldStepLimit), 47) {}

  void AddRows(const PipelineModel& /*model*/, const Demands& /*demands*/,
               const Settings& /*settings*/, std::vector<Limit>* /*rows*/) const override {}

  std::string Describe(const Limit& /*limit*/) const override {
    return "the lock of Python's interpreter (GIL)";
  }
  std::string SizedName(const PipelineModel& /*model*/, const Limit& limit) const override {
    return Describe(limit);
  }
  std::string Because(const PipelineModel& model, const Limit& limit,
                      double /*used_ratio*/) const override {
    return fmt::format(
        "the trainer's thread waits {} of its step for it, as another thread of its process runs "
        "Python: {} at most",
        FormatPercent(model.run().step_interpreter_ratio.value_or(0)),
        FormatRate(limit.bound, "batches"));
  }
  std::string WithoutSetting(const PipelineModel& model, const Limit& /*limit*/,
                             const std::string& /*culprit*/) const override {
    const std::string other = OtherPythonThread(model.run());
    return fmt::format(
        "Run {} in a process of its own, or let it rest between turns.",
        other.empty() ? "what other threads of the trainer's process compute" : other);
  }

  bool AtConsumer() const override { return true; }
  Relief Relieve(const PipelineModel& /*model*/, const Variant& at, const Limit& /*limit*/,
                 Step step) const override {
    return Faster(at, Scaled::kConsumer, 0, step);
  }
};

HR_LIMIT(HeldStep);

}  // namespace
}  // namespace headrace::analysis
