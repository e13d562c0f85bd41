// Memory bandwidth: what a batch moves to and from memory, of the best that this machine was
// measured to read (headrace doctor --calibrate).
#include "analysis/run/memory_bandwidth.h"

#include <fmt/format.h>

#include <algorithm>

#include "analysis/model/limits/resource_limit.h"
#include "analysis/thresholds.h"
#include "base/units.h"

namespace headrace::analysis {
namespace {

// Traffic to memory as it was counted, or estimated by cache misses, of the best that the machine
// was measured to read; it is taken to go with the CPU time of operators. What operators account
// for mostly stays in caches, and is no such figure.
void AddMemoryBandwidth(const RunView& run, std::vector<ResourceModel>* resources) {
  const double seconds = static_cast<double>(run.run.duration_ns) * 1e-9;
  if (seconds <= 0) return;
  const Real per_batch =
      MemorySecondsPerBatch(run, static_cast<double>(run.steps.steps_count) / seconds);
  if (!per_batch || *per_batch <= 0) return;
  ResourceModel memory{
      std::string(kMemoryBandwidthLimit), std::string(kMemoryBandwidthLimit), 1, {}};
  memory.counted_s = *per_batch;
  memory.used_by_cpu = true;
  resources->push_back(std::move(memory));
}

class MemoryBandwidthLimit final : public ResourceLimit {
 public:
  MemoryBandwidthLimit() : ResourceLimit(kMemoryBandwidthLimit, 42, kMemoryBandwidthLimit) {}

  bool simulated() const override { return false; }
  std::string Describe(const Limit& limit) const override { return limit.name; }
  std::string SizedName(const PipelineModel& /*model*/, const Limit& limit) const override {
    return limit.name;
  }
  std::string Because(const PipelineModel& model, const Limit& limit,
                      double used_ratio) const override {
    const auto memory = MemoryBandwidthOf(model.run());
    return fmt::format("{} of memory bandwidth is in use ({}): {} at most",
                       FormatPercent(std::min(1.0, used_ratio)),
                       memory ? memory->told_by : std::string("counted"),
                       FormatRate(limit.bound, "batches"));
  }
  std::string WithoutSetting(const PipelineModel& /*model*/, const Limit& /*limit*/,
                             const std::string& culprit) const override {
    return fmt::format(
        "No setting helps, and more cores alone do not: move fewer bytes{}, or use a machine with "
        "more memory bandwidth.",
        culprit.empty() ? std::string() : " in " + culprit);
  }

  // It shows as any stage that computes.
  bool ShowsAt(const PipelineModel& /*model*/, const Limit& /*limit*/,
               size_t /*stage*/) const override {
    return true;
  }
  // Threads that wait for memory count as computing: where it is nearly used up, cores and threads
  // that compute are full because of it, and more of them move no more bytes.
  bool Explains(const PipelineModel& /*model*/, const Demands& demands, const Limit& limit,
                const Limit& other) const override {
    if (limit.bound >= kBandwidthNearlyFull * other.bound) return false;
    if (other.Is(kCoresLimit)) return true;
    return other.Is(kStageLimit) &&
           demands.stage_cpu_s[other.index] > kStageDoesLittleElse * demands.stage_s[other.index];
  }
  // For the same reason what computes becomes cheaper with it.
  Relief Relieve(const PipelineModel& model, const Variant& at, const Limit& limit,
                 Step step) const override {
    Relief relief = ResourceLimit::Relieve(model, at, limit, step);
    if (limit.bound >= kBandwidthNearlyFull * model.demands().rate) return relief;
    for (const auto& [op, share] : model.resources()[limit.index].users) {
      relief.variant.scales.push_back({Scaled::kOperator, op, FactorOf(step)});
    }
    return relief;
  }

  // Where it is known from the operators' accounts alone, or the machine's best is not known.
  std::optional<UnboundedRow> Unbounded(const PipelineModel& model) const override {
    for (const ResourceModel& resource : model.resources()) {
      if (resource.kind == kMemoryBandwidthLimit) return std::nullopt;
    }
    const auto memory = MemoryBandwidthOf(model.run());
    if (!memory) return UnknownRow("memory bandwidth", "no byte was counted");
    if (!memory->ceiling_bytes_per_s || *memory->ceiling_bytes_per_s <= 0) {
      return UnknownRow("memory bandwidth",
                        "this machine was not calibrated: headrace doctor --calibrate");
    }
    const double used = memory->bytes_per_s.value() / *memory->ceiling_bytes_per_s;
    UnboundedRow row{"memory bandwidth",
                     Quantity::Unavailable("nothing of it was used", headrace::Unit::kPerSecond),
                     Quantity::Of(used, headrace::Unit::kRatio, Source::kEstimate),
                     memory->told_by};
    if (used > 0) {
      row.attainable =
          Quantity::Of(model.demands().rate / used, headrace::Unit::kPerSecond, Source::kEstimate);
    }
    return row;
  }
};

HR_COUNTED_RESOURCES(kMemoryBandwidthLimit, AddMemoryBandwidth);
HR_LIMIT(MemoryBandwidthLimit);

}  // namespace
}  // namespace headrace::analysis
