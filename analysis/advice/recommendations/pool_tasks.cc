// R32: how much a task of a pool of Python's processes has. Each is pickled, sent and answered by
// itself, which takes tens of microseconds on both sides (multiprocessing, "Pool.map", chunksize).
#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "analysis/advice/recommendations.h"
#include "analysis/run/known_loaders.h"
#include "analysis/run/operator_class.h"
#include "analysis/thresholds.h"
#include "base/units.h"

namespace headrace::analysis {
namespace {

// What the processes of a pool do, a batch.
struct PoolWork {
  std::vector<size_t> sending;
  double calls_cpu_s = 0, sending_cpu_s = 0, sending_s = 0;
  double tasks = 0;  // results that are sent
  double items = 0;  // that a task has; as many as its call has rows
};

PoolWork WorkOf(const PipelineModel& model, const StageModel& stage) {
  PoolWork work;
  int64_t items = 0, results = 0;
  for (const size_t op : stage.operators) {
    const Demands::Operator& cost = model.demands().operators[op];
    const OperatorRow& row = model.run().operators[op];
    if (ClassOf(row.kind, row.name) == OperatorClass::kSend) {
      work.sending.push_back(op);
      work.sending_cpu_s += cost.cpu_s;
      work.sending_s += cost.cpu_s + cost.blocked_s;
      work.tasks += model.operators()[op].visit_ratio;
      results += row.completions_count;
    } else {
      work.calls_cpu_s += cost.cpu_s;
      if (row.kind == "call") items += row.rows_count;
    }
  }
  if (results > 0) work.items = static_cast<double>(items) / static_cast<double>(results);
  return work;
}

Recommendation LargerTasks(const Evidence& e) {
  const PipelineModel& model = e.model();
  std::optional<PoolWork> most;
  for (const StageModel& stage : model.stages()) {
    if (!IsProcessPool(e.run(), stage.name)) continue;
    PoolWork work = WorkOf(model, stage);
    const bool is_more = !most || work.sending_s > most->sending_s;
    if (work.tasks > 0 && is_more) most = std::move(work);
  }
  if (!most) return DoesNotFire("no pool of processes was seen");
  const double task_s = (most->calls_cpu_s + most->sending_cpu_s) / most->tasks;
  const double share = most->sending_cpu_s / std::max(1e-12, task_s * most->tasks);
  const std::string why =
      fmt::format("a task of the pool takes {} of CPU time, {} of it for handing over its result",
                  FormatDuration(task_s * 1e9), FormatPercent(share));
  if (most->items > kItemsOfLargerTasks) {
    return DoesNotFire(fmt::format("a task of the pool has {:.0f} items already", most->items));
  }
  if (task_s > kTinyTask || share < kMostlyHandsOver) return DoesNotFire(why);
  // The other side of each message is CPU time of the trainer's process: outside every operator,
  // and at most as much of its step, which takes results one by one while others unpickle them.
  const double step_s = model.demands().consumer_s;
  const double step = step_s > 0 ? std::max(kLargerTaskCosts, 1 - most->sending_s / step_s) : 1;
  const auto with = [&](double sending, double other, double consumer) {
    Variant change = e.Now();
    for (const size_t op : most->sending) change.scales.push_back({Scaled::kOperator, op, sending});
    change.scales.push_back({Scaled::kOther, 0, other});
    change.scales.push_back({Scaled::kConsumer, 0, consumer});
    return change;
  };
  return IfWorthwhile(
      e,
      e.Predict(with(kLargerTaskStillCosts, 1, 1), with(kLargerTaskCosts, kLargerTaskStillCosts, 1),
                with(0, kLargerTaskCosts, step)),
      why,
      "give each task of the pool several items (chunksize of map and imap; more "
      "for each call of submit and apply)");
}

HR_RECOMMENDATION(32, "larger tasks for a pool", "", LargerTasks);

}  // namespace
}  // namespace headrace::analysis
