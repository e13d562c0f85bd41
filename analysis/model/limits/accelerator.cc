// The device on which the trainer computes. Its thread may queue work for it and ask for the
// next batch while it still computes: then its waits say nothing of how much faster loading would
// help. A batch takes the share of time in which a device is busy, divided by the rate.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "analysis/model/limits/resource_limit.h"
#include "analysis/run/accelerator_use.h"
#include "analysis/run/phases.h"
#include "analysis/run/ranks.h"
#include "analysis/thresholds.h"
#include "base/units.h"

namespace headrace::analysis {
namespace {

// How well the busy time is known, as the deviation of its logarithm.
double ErrorOfBusy(const DeviceUse& use) {
  if (!use.idle_interval) return kAcceleratorShortError;
  constexpr double kDeviations = 1.645;  // to either end of a 90 % interval
  const double low = std::max(1e-3, 1 - use.idle_interval->high);
  const double high = std::max(low, 1 - use.idle_interval->low);
  return std::max(kAcceleratorBusyError, 0.5 * std::log(high / low) / kDeviations);
}

// Several devices may be busy waiting for each other, as in an all-reduce whose slowest rank waits
// for data. And of devices on which other programs compute, too, it is not known how much is left.
void AddAccelerator(const RunView& run, std::vector<ResourceModel>* resources) {
  if (run.accelerator_use.empty() || RanksOf(run) > 1) return;
  const Phases phases = FindPhases(run);
  const std::optional<Accelerators> seen = AcceleratorsOf(run, phases);
  if (!seen || seen->story == DeviceStory::kUnused || seen->mean.shared) return;
  if (seen->devices.size() > 1) return;
  double steps = 0, seconds = 0;
  for (const size_t w : phases.steady) {
    steps += static_cast<double>(run.windows[w].steps.steps_count);
    seconds += static_cast<double>(run.windows[w].duration_ns) * 1e-9;
  }
  if (steps <= 0) return;
  ResourceModel device{"the GPU", std::string(kAcceleratorLimit), 1, {}};
  device.counted_s = seen->mean.busy_ratio() * seconds / steps;
  device.counted_error = ErrorOfBusy(seen->mean);
  resources->push_back(std::move(device));
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
    return fmt::format("{} computes {} of the time: {} at most", limit.name,
                       FormatPercent(std::min(1.0, used_ratio)),
                       FormatRate(limit.bound, "batches"));
  }
  std::string WithoutSetting(const PipelineModel& /*model*/, const Limit& /*limit*/,
                             const std::string& /*culprit*/) const override {
    return "Nothing in the pipeline: the GPU is busy. Make its part of a step cheaper: lower "
           "precision, larger batches, compiled kernels.";
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
