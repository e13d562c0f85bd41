// A device: what the storage gives, by its accounts, its calibrated curve, or the tokens of a rate
// limiter.
#include <fmt/format.h>

#include <algorithm>

#include "analysis/model/limits/resource_limit.h"
#include "analysis/model/unknown_store.h"
#include "analysis/run/reads.h"
#include "analysis/run/settings.h"
#include "base/terminal_text.h"
#include "base/units.h"

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

// What shows that the store is full.
std::string ShownBy(const RunView& run, const std::string& store) {
  for (const StoreProbeRow& probe : run.store_probes) {
    if (store != StoreNameOf(probe.stage)) continue;
    return fmt::format(
        "{} threads for {} show: they got {} more", probe.many_count,
        FormatDuration(static_cast<double>(probe.duration_ns)),
        FormatPercent(std::max(0.0, probe.many_rows_per_s / probe.few_rows_per_s - 1)));
  }
  return "runs with fewer and more threads show";
}

class Device final : public ResourceLimit {
 public:
  Device() : ResourceLimit(kDeviceLimit, 41, "device") {}

  std::string Describe(const Limit& limit) const override {
    return limit.name.starts_with(kStoreOf) ? Printable(limit.name)
                                            : ResourceLimit::Describe(limit);
  }
  std::string Because(const PipelineModel& model, const Limit& limit,
                      double used_ratio) const override {
    if (!limit.name.starts_with(kStoreOf)) return ResourceLimit::Because(model, limit, used_ratio);
    return fmt::format("{} gives {} at most, as {}", Describe(limit),
                       FormatRate(limit.bound, "batches"), ShownBy(model.run(), limit.name));
  }
  std::string WithoutSetting(const PipelineModel& /*model*/, const Limit& limit,
                             const std::string& /*culprit*/) const override {
    return fmt::format("No setting helps: read fewer bytes from {}, or use a faster one.",
                       Printable(limit.name));
  }
  // One that the reader asks for many small reads may be full of requests, not of bytes.
  std::string Recommended(const PipelineModel& model, const Limit& limit) const override {
    const std::optional<Reads> reads = ReadsOf(model.run());
    if (!reads || !ManySmallReads(*reads)) return "";
    const auto& users = model.resources()[limit.index].users;
    const bool reads_from_it = std::any_of(users.begin(), users.end(), [&](const auto& user) {
      return user.first == reads->io || user.first == reads->fetch;
    });
    return reads_from_it ? "R5" : "";
  }
  std::string ResourceClass(const PipelineModel& model, const Limit& limit) const override {
    return IsModelledLink(model.run().run, limit.name) ? "nic_ingress" : "storage";
  }
};

HR_LIMIT(Device);

}  // namespace
}  // namespace headrace::analysis
