// R32: how much a task of a pool of Python's processes has. Each is pickled, sent and answered by
// itself, which takes tens of microseconds on both sides (multiprocessing, "Pool.map", chunksize).
#include <fmt/format.h>

#include <algorithm>

#include "analysis/advice/recommendations.h"
#include "analysis/run/known_loaders.h"
#include "analysis/thresholds.h"
#include "base/units.h"

namespace headrace::analysis {
namespace {

constexpr double kMostOfItsTime = 0.5;  // less may be worth it, but is not what limits
constexpr double kSeveralItems = 1.5;   // calls for each result that is sent

// What the processes of a pool do, a batch.
struct PoolWork {
  std::vector<size_t> sending;
  double calls_s = 0, sending_s = 0;
  double calls = 0, results = 0;
};

PoolWork WorkOf(const PipelineModel& model, const StageModel& stage) {
  PoolWork work;
  for (const size_t op : stage.operators) {
    const Demands::Operator& cost = model.demands().operators[op];
    const OperatorModel& one = model.operators()[op];
    const bool sends = one.kind == "serialize";
    (sends ? work.sending_s : work.calls_s) += cost.cpu_s + cost.blocked_s;
    (sends ? work.results : work.calls) += one.visit_ratio;
    if (sends) work.sending.push_back(op);
  }
  return work;
}

Recommendation LargerTasks(const Evidence& e) {
  const PipelineModel& model = e.model();
  std::optional<PoolWork> most;
  for (const StageModel& stage : model.stages()) {
    if (!IsProcessPool(e.run(), stage.name)) continue;
    PoolWork work = WorkOf(model, stage);
    if (work.results > 0 && work.calls > 0 && (!most || work.sending_s > most->sending_s))
      most = std::move(work);
  }
  if (!most) return DoesNotFire("no pool of processes was seen");
  const std::string why =
      fmt::format("a task of the pool computes {}, and to hand over its result takes {}",
                  FormatDuration(most->calls_s / most->calls * 1e9),
                  FormatDuration(most->sending_s / most->results * 1e9));
  if (most->calls > kSeveralItems * most->results) {
    return DoesNotFire(
        fmt::format("a task of the pool has {:.0f} items already", most->calls / most->results));
  }
  if (most->sending_s < kMostOfItsTime * (most->sending_s + most->calls_s)) {
    return DoesNotFire(why + ": that is less");
  }
  // The other side of each message is CPU time of the trainer's process: outside every operator,
  // and at most as much of its step, which takes results one by one while others unpickle them.
  const double step_s = model.demands().consumer_s;
  const double step = step_s > 0 ? std::max(kSharedCosts, 1 - most->sending_s / step_s) : 1;
  const auto with = [&](double sending, double other, double consumer) {
    Variant change = e.Now();
    for (const size_t op : most->sending) change.scales.push_back({Scaled::kOperator, op, sending});
    change.scales.push_back({Scaled::kOther, 0, other});
    change.scales.push_back({Scaled::kConsumer, 0, consumer});
    return change;
  };
  return IfWorthwhile(
      e,
      e.Predict(with(kSharedStillCosts, 1, 1), with(kSharedCosts, kSharedStillCosts, 1),
                with(0, kSharedCosts, step)),
      why,
      "give each task of the pool several items (chunksize of imap and map), or a whole batch");
}

HR_RECOMMENDATION(32, "larger tasks for a pool", "", LargerTasks);

}  // namespace
}  // namespace headrace::analysis
