// A device: what the storage gives, by its accounts, its calibrated curve, or the tokens of a rate
// limiter.
#include <fmt/format.h>

#include "analysis/model/limits/resource_limit.h"
#include "analysis/run/settings.h"

namespace headrace::analysis {
namespace {

bool IsSet(const RunRow& run, const std::string& key) {
  const auto text = SettingOf(run, key);
  return text && *text != "0";
}

// A modelled device of a bandwidth and nothing else is a link; one that seeks or counts requests is
// a storage.
bool IsModelledLink(const RunRow& run, const std::string& name) {
  return name == "throttle" && IsSet(run, "source.throttle.bandwidth") &&
         !IsSet(run, "source.throttle.iops") && !IsSet(run, "source.throttle.seek");
}

class Device final : public ResourceLimit {
 public:
  Device() : ResourceLimit(kDeviceLimit, 41, "device") {}

  std::string WithoutSetting(const PipelineModel& /*model*/, const Limit& limit,
                             const std::string& /*culprit*/) const override {
    return fmt::format("No setting helps: read fewer bytes from {}, or use a faster one.",
                       limit.name);
  }
  std::string ResourceClass(const PipelineModel& model, const Limit& limit) const override {
    return IsModelledLink(model.run().run, limit.name) ? "nic_ingress" : "storage";
  }
};

HR_LIMIT(Device);

}  // namespace
}  // namespace headrace::analysis
