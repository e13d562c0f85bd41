// Network: what each direction of a network interface carries, by whomever, of its speed.
#include <fmt/format.h>

#include "analysis/model/limits/resource_limit.h"
#include "analysis/thresholds.h"
#include "base/terminal_text.h"
#include "base/units.h"

namespace headrace::analysis {
namespace {

// What the links carried, by whomever, grows with the batches.
void AddLinks(const RunView& run, std::vector<ResourceModel>* resources) {
  for (const MeasurementRow& row : run.measurements) {
    if (row.metric != "nic_use_ratio" || !row.value || *row.value < kLinkIsARow) continue;
    ResourceModel link{
        fmt::format("network {} {}", row.subject, row.cause), std::string(kNetworkLimit), 1, {}};
    link.counted_s = *row.value * static_cast<double>(run.run.duration_ns) * 1e-9 /
                     static_cast<double>(run.steps.steps_count);
    resources->push_back(std::move(link));
  }
}

class Network final : public ResourceLimit {
 public:
  Network() : ResourceLimit(kNetworkLimit, 43, kNetworkLimit) {}

  bool simulated() const override { return false; }
  std::string Describe(const Limit& limit) const override { return Printable(limit.name); }
  std::string SizedName(const PipelineModel& /*model*/, const Limit& limit) const override {
    return limit.name;
  }
  std::string Because(const PipelineModel& /*model*/, const Limit& limit,
                      double used_ratio) const override {
    return fmt::format("{} is {} full: {} at most", Describe(limit),
                       FormatPercent(std::min(1.0, used_ratio)),
                       FormatRate(limit.bound, "batches"));
  }
  std::string WithoutSetting(const PipelineModel& /*model*/, const Limit& limit,
                             const std::string& /*culprit*/) const override {
    return fmt::format("No setting helps: send fewer bytes over {}, or use a faster link.",
                       Describe(limit));
  }
  std::string WhyUnlimited(const PipelineModel& /*model*/) const override {
    return "nothing was carried";
  }
  std::string ResourceClass(const PipelineModel& /*model*/, const Limit& /*limit*/) const override {
    return "nic_ingress";
  }

  // The busiest direction of the busiest interface, where none is busy enough to be a row.
  std::optional<UnboundedRow> Unbounded(const PipelineModel& model) const override {
    for (const ResourceModel& resource : model.resources()) {
      if (resource.kind == kNetworkLimit) return std::nullopt;
    }
    const MeasurementRow* busiest = nullptr;
    bool seen = false;
    for (const MeasurementRow& row : model.run().measurements) {
      seen = seen || row.metric == "nic_received_bytes";
      if (row.metric != "nic_use_ratio" || !row.value) continue;
      if (busiest == nullptr || *row.value > *busiest->value) busiest = &row;
    }
    if (busiest == nullptr) {
      return UnknownRow("network", seen ? "the driver does not report the link's speed"
                                        : "no interface was counted");
    }
    UnboundedRow row{fmt::format("network {} {}", busiest->subject, busiest->cause),
                     Quantity::Unavailable("nothing of it was used", headrace::Unit::kPerSecond),
                     Quantity::Of(*busiest->value, headrace::Unit::kRatio, Source::kEstimate),
                     "the interface, all processes"};
    if (*busiest->value > 0) {
      row.attainable = Quantity::Of(model.demands().rate / *busiest->value,
                                    headrace::Unit::kPerSecond, Source::kEstimate);
    }
    return row;
  }
};

HR_COUNTED_RESOURCES(kNetworkLimit, AddLinks);
HR_LIMIT(Network);

}  // namespace
}  // namespace headrace::analysis
