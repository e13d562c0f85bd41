#include "analysis/model/scale.h"

#include <algorithm>

namespace headrace::analysis {
namespace {

// Takes `cpu_s` and `blocked_s` off one operator and all sums that it is part of.
void Lessen(const PipelineModel& model, size_t op, double cpu_s, double blocked_s,
            Demands* demands) {
  Demands::Operator& cost = demands->operators[op];
  cost.cpu_s -= cpu_s;
  cost.blocked_s -= blocked_s;
  demands->cpu_s -= cpu_s;
  const size_t stage = model.operators()[op].stage;
  if (stage == kNoStage) {
    demands->unattributed_cpu_s -= cpu_s;
    demands->consumer_cpu_s -= cpu_s;
    return;
  }
  demands->stage_cpu_s[stage] -= cpu_s;
  demands->stage_s[stage] -= cpu_s + blocked_s;
}

void ScaleOperator(const PipelineModel& model, size_t op, double factor, Demands* demands) {
  const Demands::Operator before = demands->operators[op];
  Lessen(model, op, before.cpu_s * (1 - factor), before.blocked_s * (1 - factor), demands);
  demands->operators[op].busy_s *= factor;
  for (size_t r = 0; r < model.resources().size(); ++r) {
    for (const auto& [user, share] : model.resources()[r].users) {
      if (user != op) continue;
      demands->resources[r].hold_s *= 1 - share * (1 - factor);
      demands->resources[r].limiter_s *= 1 - share * (1 - factor);
    }
  }
}

void ScaleResource(const PipelineModel& model, size_t resource, double factor, Demands* demands) {
  const double less_s = demands->resources[resource].hold_s * (1 - factor);
  const ResourceModel& scaled = model.resources()[resource];
  // Nobody is known to wait for what only the machine counts.
  const auto users = scaled.counted_s ? decltype(scaled.users){} : scaled.users;
  for (const auto& [op, share] : users) {
    const Demands::Operator& cost = demands->operators[op];
    // What holds a resource is taken to be blocked first, as the simulation takes it.
    const double blocked_s = std::min(cost.blocked_s, less_s * share);
    const double cpu_s = std::min(cost.cpu_s, less_s * share - blocked_s);
    Lessen(model, op, cpu_s, blocked_s, demands);
  }
  demands->resources[resource].hold_s *= factor;
  demands->resources[resource].limiter_s *= factor;
  demands->resources[resource].wait_s *= factor;
}

void ScaleConsumer(const PipelineModel& model, double factor, Demands* demands) {
  const double less_s = model.ConsumerComputeCpu(*demands) * (1 - factor);
  for (size_t i = 0; i < model.operators().size(); ++i) {
    if (model.operators()[i].stage == kNoStage) demands->operators[i].cpu_s *= factor;
  }
  demands->consumer_s *= factor;
  demands->consumer_cpu_s -= less_s;
  demands->unattributed_cpu_s -= less_s;
  demands->cpu_s -= less_s;
}

void ScaleOther(double factor, Demands* demands) {
  const double other_s = std::max(0.0, demands->unattributed_cpu_s - demands->consumer_cpu_s);
  demands->unattributed_cpu_s -= other_s * (1 - factor);
  demands->cpu_s -= other_s * (1 - factor);
}

}  // namespace

Demands Apply(const PipelineModel& model, Demands demands, const std::vector<Scale>& scales) {
  for (const Scale& scale : scales) {
    switch (scale.part) {
      case Scaled::kOperator:
        ScaleOperator(model, scale.index, scale.factor, &demands);
        break;
      case Scaled::kStage:
        for (size_t op : model.stages()[scale.index].operators) {
          ScaleOperator(model, op, scale.factor, &demands);
        }
        break;
      case Scaled::kResource:
        ScaleResource(model, scale.index, scale.factor, &demands);
        break;
      case Scaled::kAdded:
        Lessen(model, scale.index, scale.cpu ? -scale.factor : 0, scale.cpu ? 0 : -scale.factor,
               &demands);
        break;
      case Scaled::kConsumer:
        ScaleConsumer(model, scale.factor, &demands);
        break;
      case Scaled::kOrder:
        demands.order_wait_s *= scale.factor;
        demands.unevenness *= scale.factor;  // out of turn nobody waits for the slowest worker
        break;
      case Scaled::kUneven:
        demands.unevenness *= scale.factor;
        break;
      case Scaled::kAskedLate:
        demands.asks_late *= scale.factor;
        break;
      case Scaled::kOther:
        ScaleOther(scale.factor, &demands);
        break;
      case Scaled::kCacheDisk:
        demands.cache_disk_s.resize(std::max(demands.cache_disk_s.size(), scale.index + 1));
        demands.cache_disk_s[scale.index] += scale.factor;
        break;
    }
  }
  return demands;
}

}  // namespace headrace::analysis
