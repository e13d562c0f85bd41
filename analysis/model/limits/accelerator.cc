// The devices on which the trainer computes. Its thread may queue work for them and ask for the
// next batch while they still compute: then its waits say nothing of how much faster loading would
// help. A batch takes the share of time in which a device is busy, divided by the rate.
#include <fmt/format.h>

#include <algorithm>

#include "analysis/model/limits/resource_limit.h"
#include "analysis/run/accelerator_use.h"
#include "analysis/run/phases.h"
#include "analysis/thresholds.h"
#include "base/units.h"

namespace headrace::analysis {
namespace {

constexpr const char* kOneDevice = "the GPU";

// Of devices on which other programs compute, too, it is not known how much is left.
void AddAccelerator(const RunView& run, std::vector<ResourceModel>* resources) {
  if (run.accelerator_use.empty()) return;
  const Phases phases = FindPhases(run);
  const std::optional<Accelerators> seen = AcceleratorsOf(run, phases);
  if (!seen || seen->story == DeviceStory::kUnused || seen->mean.shared) return;
  double steps = 0, seconds = 0;
  for (const size_t w : phases.steady) {
    steps += static_cast<double>(run.windows[w].steps.steps_count);
    seconds += static_cast<double>(run.windows[w].duration_ns) * 1e-9;
  }
  if (steps <= 0) return;
  ResourceModel devices{
      seen->devices.size() == 1 ? kOneDevice : "the GPUs", std::string(kAcceleratorLimit), 1, {}};
  devices.counted_s = seen->mean.busy_ratio() * seconds / steps;
  devices.counted_error = kAcceleratorBusyError;
  resources->push_back(std::move(devices));
}

class AcceleratorLimit final : public ResourceLimit {
 public:
  AcceleratorLimit() : ResourceLimit(kAcceleratorLimit, 11, kAcceleratorLimit) {}

  bool simulated() const override { return false; }
  bool AtConsumer() const override { return true; }
  std::string Describe(const Limit& limit) const override { return limit.name; }
  std::string SizedName(const PipelineModel& /*model*/, const Limit& limit) const override {
    return limit.name;
  }
  std::string Because(const PipelineModel& /*model*/, const Limit& limit,
                      double used_ratio) const override {
    return fmt::format("{} {} {} of the time: {} at most", limit.name,
                       limit.name == kOneDevice ? "computes" : "compute",
                       FormatPercent(std::min(1.0, used_ratio)),
                       FormatRate(limit.bound, "batches"));
  }
  std::string WithoutSetting(const PipelineModel& /*model*/, const Limit& limit,
                             const std::string& /*culprit*/) const override {
    return fmt::format(
        "Nothing in the pipeline: {} is busy. Only less work for it in each step is faster.",
        limit.name == kOneDevice ? kOneDevice : "every GPU");
  }

  // Its waits look as if a stage, or the trainer, were the limit.
  bool ShowsAt(const PipelineModel& /*model*/, const Limit& /*limit*/,
               size_t /*stage*/) const override {
    return true;
  }
  // The trainer's thread waits for the device, and that counts as computing.
  bool Explains(const PipelineModel& model, const Demands& /*demands*/, const Limit& limit,
                const Limit& other) const override {
    return other.Is(kConsumerLimit) && model.demands().rate > kAcceleratorBusy * limit.bound;
  }
  double prediction_error() const override { return kAcceleratorError; }
};

HR_COUNTED_RESOURCES(kAcceleratorLimit, AddAccelerator);
HR_LIMIT(AcceleratorLimit);

}  // namespace
}  // namespace headrace::analysis
