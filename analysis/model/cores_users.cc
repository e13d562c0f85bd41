#include "analysis/model/cores_users.h"

#include <utility>

#include "analysis/run/unseen_processes.h"
#include "analysis/thresholds.h"

namespace headrace::analysis {

std::optional<UnseenUsers> FindUnseenUsers(const PipelineModel& model) {
  std::string who = UnseenProcessesWithMostCpu(model.run());
  if (!who.empty()) return UnseenUsers{std::move(who), false};
  const Demands& demands = model.demands();
  const double beside_s = demands.unattributed_cpu_s - demands.consumer_cpu_s;  // a batch
  if (beside_s <= kMostIsUnseen * demands.cpu_s) return std::nullopt;
  // Half of that time is most of what is beside the operators.
  who = ShortLivedProcesses(model.run(), beside_s * demands.rate * model.steady_seconds() / 2);
  if (who.empty()) return std::nullopt;
  return UnseenUsers{std::move(who), true};
}

}  // namespace headrace::analysis
