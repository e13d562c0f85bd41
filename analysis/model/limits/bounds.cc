#include "analysis/model/limits/bounds.h"

#include <algorithm>

#include "analysis/model/limits/limit_kind.h"
#include "analysis/thresholds.h"
#include "base/infinite.h"

namespace headrace::analysis {
namespace {

const LimitKind* KindNamed(std::string_view name) {
  return Registry<std::shared_ptr<const LimitKind>>::Global().Find(name)->get();
}

}  // namespace

std::vector<Limit> Bounds(const PipelineModel& model, const Demands& demands,
                          const Settings& settings) {
  std::vector<Limit> rows;
  for (const LimitKind* kind : LimitKinds()) {
    const size_t before = rows.size();
    kind->AddRows(model, demands, settings, &rows);
    for (size_t i = before; i < rows.size(); ++i) rows[i].kind = kind;
  }
  return rows;
}

double LeastBound(const std::vector<Limit>& limits) {
  double least = kInfinite;
  for (const Limit& limit : limits) {
    if (!limit.kind->estimated()) least = std::min(least, limit.bound);
  }
  return least;
}

size_t BindingRow(const PipelineModel& model, const Demands& demands,
                  const std::vector<Limit>& limits) {
  size_t least = 0;
  std::optional<size_t> estimate;
  for (size_t i = 1; i < limits.size(); ++i) {
    if (limits[i].kind->estimated()) {
      estimate = i;
    } else if (limits[i].bound < limits[least].bound) {
      least = i;
    }
  }
  if (estimate && limits[*estimate].bound < kEstimateMatters * limits[least].bound) {
    return *estimate;
  }
  std::optional<size_t> next;
  for (size_t i = 0; i < limits.size(); ++i) {
    if (i == least || limits[i].kind->estimated()) continue;
    if (!next || limits[i].bound < limits[*next].bound) next = i;
  }
  if (next && limits[least].kind->YieldsTo(model, limits[least], limits[*next])) least = *next;
  std::optional<size_t> shared;
  for (size_t i = 0; i < limits.size(); ++i) {
    if (i == least || !limits[i].kind->Explains(model, demands, limits[i], limits[least])) continue;
    if (!shared || limits[i].bound < limits[*shared].bound) shared = i;
  }
  return shared.value_or(least);
}

bool IsWithin(const PipelineModel& model, const Limit& first, const Limit& limit, double least) {
  if (limit.kind->estimated()) return limit.bound >= kEstimateMatters * least;
  if (first.kind->estimated()) {
    return limit.Is(kStageLimit) && limit.kind->StageOf(limit) == first.kind->StageOf(first);
  }
  return limit.bound < first.bound && (first.kind->Explains(model, model.demands(), first, limit) ||
                                       limit.kind->YieldsTo(model, limit, first));
}

std::vector<SharedLoad> SharedLoads(const PipelineModel& model, const Demands& demands) {
  std::vector<SharedLoad> loads;
  for (const LimitKind* kind : LimitKinds()) kind->AddLoads(model, demands, &loads);
  return loads;
}

Limit LimitOfConsumer(double batches_per_second) {
  return {KindNamed(kConsumerLimit), 0, std::string(kConsumerLimit), batches_per_second};
}

Limit LimitOfHeldStep(const Limit& of) {
  return {KindNamed(kHeldStepLimit), of.index, of.name, of.bound};
}

Limit LimitOfStage(const PipelineModel& model, size_t stage) {
  return {KindNamed(kStageLimit), stage, model.stages()[stage].name, 0};
}

}  // namespace headrace::analysis
