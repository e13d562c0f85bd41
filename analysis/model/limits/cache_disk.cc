// The disk of a cache that a plan puts in: what a batch reads back from it, or writes to it.
#include <fmt/format.h>

#include "analysis/model/limits/limit_kind.h"
#include "analysis/thresholds.h"
#include "base/units.h"

namespace headrace::analysis {
namespace {

class CacheDisk final : public LimitKind {
 public:
  CacheDisk() : LimitKind("cache_disk", 44) {}

  void AddRows(const PipelineModel& /*model*/, const Demands& demands, const Settings& /*settings*/,
               std::vector<Limit>* rows) const override {
    for (size_t tier = 0; tier < demands.cache_disk_s.size(); ++tier) {
      if (demands.cache_disk_s[tier] <= 0) continue;
      rows->push_back({this, tier, "cache disk", BoundOf(1, demands.cache_disk_s[tier])});
    }
  }

  std::string Describe(const Limit& /*limit*/) const override { return "the disk of the cache"; }
  std::string SizedName(const PipelineModel& /*model*/, const Limit& limit) const override {
    return limit.name;
  }
  std::string ResourceClass(const PipelineModel& /*model*/, const Limit& /*limit*/) const override {
    return "storage";
  }
  // A stage that does little but wait for it.
  bool Explains(const PipelineModel& /*model*/, const Demands& demands, const Limit& limit,
                const Limit& other) const override {
    return other.Is(kStageLimit) && limit.bound < kExplainsStage * other.bound &&
           demands.cache_disk_s[limit.index] > kStageDoesLittleElse * demands.stage_s[other.index];
  }
  Relief Relieve(const PipelineModel& /*model*/, const Variant& at, const Limit& limit,
                 Step step) const override {
    const double factor = FactorOf(step);
    Relief relief{at, FasterText(factor)};
    for (Scale& scale : relief.variant.scales) {
      if (scale.part == Scaled::kCacheDisk && scale.index == limit.index) scale.factor *= factor;
    }
    return relief;
  }
};

HR_LIMIT(CacheDisk);

}  // namespace
}  // namespace headrace::analysis
