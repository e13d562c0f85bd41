#include "analysis/model/limits/resource_limit.h"

#include <algorithm>

#include "analysis/thresholds.h"

namespace headrace::analysis {
namespace {

// A rate limiter books the time for its tokens as waiting, and holds nothing.
double DemandOn(const Demands::Resource& resource) {
  return std::max(resource.hold_s, resource.limiter_s);
}

}  // namespace

void ResourceLimit::AddRows(const PipelineModel& model, const Demands& demands,
                            const Settings& /*settings*/, std::vector<Limit>* rows) const {
  for (size_t r = 0; r < model.resources().size(); ++r) {
    const ResourceModel& resource = model.resources()[r];
    if (resource.kind != resource_kind_) continue;
    rows->push_back(
        {this, r, resource.name, BoundOf(resource.servers, DemandOn(demands.resources[r]))});
  }
}

std::optional<size_t> ResourceLimit::Culprit(const PipelineModel& model, const Limit& limit) const {
  std::optional<size_t> best;
  double most = 0;
  for (const auto& [index, share] : model.resources()[limit.index].users) {
    if (best && share <= most) continue;
    best = index;
    most = share;
  }
  return best;
}

void ResourceLimit::AddLoads(const PipelineModel& model, const Demands& demands,
                             std::vector<SharedLoad>* loads) const {
  for (size_t r = 0; r < model.resources().size(); ++r) {
    const ResourceModel& resource = model.resources()[r];
    const double demand = DemandOn(demands.resources[r]);
    if (resource.kind != resource_kind_ || demand <= 0) continue;
    SharedLoad load{resource.name, static_cast<double>(resource.servers),
                    std::vector<double>(model.stages().size(), 0), demand};
    for (const auto& [op, share] : resource.users) {
      const size_t stage = model.operators()[op].stage;
      if (stage == kNoStage) continue;
      load.stage_s[stage] += share * demand;
      load.other_s = std::max(0.0, load.other_s - share * demand);
    }
    loads->push_back(std::move(load));
  }
}

Relief ResourceLimit::Relieve(const PipelineModel& /*model*/, const Variant& at, const Limit& limit,
                              Step step) const {
  return Faster(at, Scaled::kResource, limit.index, step);
}

// Threads that hold it nearly all of their time gain nothing by being more.
bool ResourceLimit::Explains(const PipelineModel& model, const Demands& demands, const Limit& limit,
                             const Limit& other) const {
  if (!other.Is(kStageLimit) || limit.bound >= kExplainsStage * other.bound) return false;
  double held_s = 0;
  for (const auto& [index, share] : model.resources()[limit.index].users) {
    if (model.operators()[index].stage == other.index) {
      held_s += share * demands.resources[limit.index].hold_s;
    }
  }
  return held_s > kStageDoesLittleElse * demands.stage_s[other.index];
}

// It shows as the stage that uses it most.
bool ResourceLimit::ShowsAt(const PipelineModel& model, const Limit& limit, size_t stage) const {
  const ResourceModel& resource = model.resources()[limit.index];
  if (resource.users.empty()) return true;
  return std::any_of(resource.users.begin(), resource.users.end(), [&](const auto& user) {
    return model.operators()[user.first].stage == stage;
  });
}

}  // namespace headrace::analysis
