#include "tests/validation/strategy.h"

namespace headrace::validation {

std::vector<StageCost> CostsOf(const analysis::RunView& run) {
  std::vector<StageCost> costs;
  const double steps = static_cast<double>(run.steps.steps_count);
  for (const analysis::StageRow& stage : run.stages) {
    StageCost cost;
    cost.threads = static_cast<int>(stage.last_parallelism_count);
    cost.sequential = stage.max_parallelism_count == 1;
    for (const analysis::OperatorRow& op : run.operators) {
      if (op.stage != stage.name) continue;
      cost.cpu_s += static_cast<double>(op.on_cpu_ns.value_or(op.busy_ns)) * 1e-9 / steps;
      cost.wall_s += static_cast<double>(op.busy_ns) * 1e-9 / steps;
      if (op.completions_count > 0) {
        cost.bytes =
            static_cast<double>(op.bytes_out_bytes) / static_cast<double>(op.completions_count);
      }
      if (op.kind == "read") {
        cost.device_s += static_cast<double>(op.busy_ns - op.lock_wait_ns) * 1e-9 / steps;
      }
    }
    cost.source = true;
    for (const analysis::QueueRow& queue : run.queues) {
      if (queue.consumer_stage == stage.name) cost.source = false;
    }
    costs.push_back(cost);
  }
  return costs;
}

Choice AsRecorded(const analysis::RunView& run) {
  Choice choice;
  for (const analysis::StageRow& stage : run.stages) {
    choice.threads.push_back(static_cast<int>(stage.last_parallelism_count));
    choice.queues.push_back(4);
    for (const analysis::QueueRow& queue : run.queues) {
      if (queue.producer_stage == stage.name) {
        choice.queues.back() = static_cast<int>(queue.capacity_count);
      }
    }
  }
  return choice;
}

Strategy Unchanged() {
  return {"as it is", [](const analysis::RunView& run, const Allowed&, const Measure&) {
            return AsRecorded(run);
          }};
}

std::vector<Strategy> AllStrategies() {
  return {Ours(),         Unchanged(),   AllCores(), HillClimb(),
          Plumber(false), Plumber(true), Ray(),      Cachew()};
}

}  // namespace headrace::validation
