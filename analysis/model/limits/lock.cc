// A lock: one thread at a time, or as many as it has servers, for as long as they hold it.
#include <fmt/format.h>

#include "analysis/model/limits/resource_limit.h"
#include "analysis/thresholds.h"

namespace headrace::analysis {
namespace {

class Lock final : public ResourceLimit {
 public:
  Lock() : ResourceLimit(kLockLimit, 40, "lock") {}

  std::string WithoutSetting(const PipelineModel& /*model*/, const Limit& limit,
                             const std::string& /*culprit*/) const override {
    return fmt::format(
        "No setting helps: hold lock {} for less time, or split it. More threads only wait.",
        limit.name);
  }
  double prediction_error() const override { return kLockError; }
};

HR_LIMIT(Lock);

}  // namespace
}  // namespace headrace::analysis
