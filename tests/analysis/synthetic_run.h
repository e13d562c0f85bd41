// Runs made by the simulator, for the tests of analysis and of reports: a chain with known costs,
// its counters sampled as a collector would sample them.
#pragma once
#include <cmath>

#include "analysis/model/simulate.h"
#include "analysis/run/run_view.h"

namespace headrace::analysis {

inline int64_t Ns(double seconds) { return static_cast<int64_t>(std::llround(seconds * 1e9)); }

inline OperatorCounters Difference(const SimulatedCounters::OperatorTimes& a,
                                   const SimulatedCounters::OperatorTimes& b) {
  OperatorCounters op;
  op.completions_count = a.completions - b.completions;
  op.rows_count = 64 * op.completions_count;
  op.bytes_in_bytes = op.bytes_out_bytes = 65536 * op.completions_count;
  op.on_cpu_ns = Ns(a.cpu_s - b.cpu_s);
  op.lock_wait_ns = Ns(a.lock_wait_s - b.lock_wait_s);
  op.busy_ns = *op.on_cpu_ns + Ns(a.blocked_s - b.blocked_s) + Ns(a.runnable_s - b.runnable_s);
  op.wait_in_ns = Ns(a.wait_in_s - b.wait_in_s);
  op.wait_out_ns = Ns(a.wait_out_s - b.wait_out_s);
  return op;
}

// Records `pipeline` for `seconds` in windows of half a second.
inline RunView Record(const SimulatedPipeline& pipeline, double seconds, uint64_t seed) {
  RunView view;
  view.run.run_id = 1;
  view.run.name = "synthetic";
  view.run.state = "complete";
  view.run.pipeline_path = "pipeline.toml";
  view.run.accounting_level = 2;
  view.run.cores_count = pipeline.cores;
  view.run.cores_bound_by = "affinity";
  view.run.memory_bytes = int64_t{8} << 30;
  view.run.duration_ns = Ns(seconds);
  SimulatedCounters before;
  before.operators.resize(pipeline.stages.size());
  for (size_t s = 0; s < pipeline.stages.size(); ++s) {
    before.operators[s].resize(pipeline.stages[s].operators.size());
  }
  before.queues.resize(pipeline.stages.size());
  before.resources.resize(pipeline.resources.size());
  const SimulatedCounters zero = before;

  const auto window_of = [&](const SimulatedCounters& a, const SimulatedCounters& b) {
    WindowRow window;
    window.start_ns = Ns(b.time_s);
    window.duration_ns = Ns(a.time_s - b.time_s);
    const double elapsed = a.time_s - b.time_s;
    for (size_t s = 0; s < pipeline.stages.size(); ++s) {
      StageCounters stage;
      stage.parallelism_count = pipeline.stages[s].parallelism;
      stage.lifetime_ns = Ns(elapsed * pipeline.stages[s].parallelism);
      stage.on_cpu_ns = 0;
      stage.runnable_ns = 0;
      for (size_t i = 0; i < a.operators[s].size(); ++i) {
        window.operators.push_back(Difference(a.operators[s][i], b.operators[s][i]));
        *stage.on_cpu_ns += *window.operators.back().on_cpu_ns;
        *stage.runnable_ns += Ns(a.operators[s][i].runnable_s - b.operators[s][i].runnable_s);
      }
      window.stages.push_back(stage);
      QueueCounters queue;
      const int capacity = pipeline.stages[s].queue_capacity;
      queue.mean_occupancy_ratio =
          (a.queues[s].occupancy_s - b.queues[s].occupancy_s) / elapsed / capacity;
      queue.full_ratio = (a.queues[s].full_s - b.queues[s].full_s) / elapsed;
      queue.empty_ratio = (a.queues[s].empty_s - b.queues[s].empty_s) / elapsed;
      queue.puts_count = a.queues[s].puts - b.queues[s].puts;
      queue.gets_count = a.queues[s].gets - b.queues[s].gets;
      window.queues.push_back(queue);
    }
    for (size_t r = 0; r < pipeline.resources.size(); ++r) {
      window.resources.push_back({a.resources[r].acquisitions - b.resources[r].acquisitions,
                                  Ns(a.resources[r].wait_s - b.resources[r].wait_s),
                                  Ns(a.resources[r].hold_s - b.resources[r].hold_s), 0});
    }
    window.steps = {a.steps - b.steps, 64 * (a.steps - b.steps), Ns(a.step_wait_s - b.step_wait_s),
                    Ns(a.step_compute_s - b.step_compute_s)};
    return window;
  };
  const SimulatedCounters end =
      Simulate(pipeline, seconds, 0, seed, 0.5, [&](const SimulatedCounters& now) {
        view.windows.push_back(window_of(now, before));
        before = now;
      });
  const WindowRow all = window_of(end, zero);
  size_t index = 0;
  for (size_t s = 0; s < pipeline.stages.size(); ++s) {
    const SimulatedStage& stage = pipeline.stages[s];
    StageRow row;
    static_cast<StageCounters&>(row) = all.stages[s];
    row.name = stage.name;
    row.stage_index = static_cast<int64_t>(s);
    row.last_parallelism_count = stage.parallelism;
    view.stages.push_back(row);
    for (size_t i = 0; i < stage.operators.size(); ++i) {
      OperatorRow op;
      static_cast<OperatorCounters&>(op) = all.operators[index++];
      op.name = stage.operators[i].name;
      op.kind = stage.operators[i].resource >= 0 ? "lock" : "spin";
      op.stage = stage.name;
      op.stage_index = static_cast<int64_t>(s);
      op.position_index = static_cast<int64_t>(i);
      op.source = "thread_clock";
      view.operators.push_back(op);
    }
    QueueRow queue;
    static_cast<QueueCounters&>(queue) = all.queues[s];
    queue.name = stage.name + ".out";
    queue.producer_stage = stage.name;
    if (s + 1 < pipeline.stages.size()) queue.consumer_stage = pipeline.stages[s + 1].name;
    queue.capacity_count = stage.queue_capacity;
    view.queues.push_back(queue);
  }
  for (size_t r = 0; r < pipeline.resources.size(); ++r) {
    ResourceRow row;
    static_cast<ResourceCounters&>(row) = all.resources[r];
    row.name = pipeline.resources[r].name;
    row.kind = "lock";
    row.servers_count = pipeline.resources[r].servers;
    view.resources.push_back(row);
  }
  static_cast<StepCounters&>(view.steps) = all.steps;
  view.steps.wall_ns = view.run.duration_ns;
  return view;
}

// What a network card has received: this share of what its link carries.
inline void ReceiveBy(RunView* run, const char* card, double use_ratio) {
  MeasurementRow use;
  use.metric = "nic_use_ratio";
  use.subject = card;
  use.cause = "received";
  use.value = use_ratio;
  run->measurements.push_back(use);
}

// Makes of what the first operator was blocked a wait for room in a memory budget, into which `fit`
// splits, one for each step, fit at once. Each is in work for `held_s`.
inline void WaitForMemory(RunView* run, int fit, double held_s) {
  ResourceRow budget;
  budget.name = "memory budget";
  budget.kind = "memory";
  budget.servers_count = 100;
  budget.acquisitions_count = run->steps.steps_count;
  budget.moved_bytes = budget.acquisitions_count * (budget.servers_count * 1'000'000 / fit);
  const auto wait = [&](OperatorCounters* op) {
    const int64_t blocked_ns =
        op->busy_ns - op->on_cpu_ns.value_or(0) - op->runnable_ns.value_or(0);
    op->busy_ns -= blocked_ns;
    op->wait_out_ns += blocked_ns;
    return blocked_ns;
  };
  budget.wait_ns = wait(&run->operators[0]);
  budget.hold_ns = Ns(static_cast<double>(budget.acquisitions_count) * held_s);
  for (WindowRow& window : run->windows) {
    ResourceCounters part;
    part.wait_ns = wait(&window.operators[0]);
    window.resources.push_back(part);
  }
  run->resources.push_back(budget);
  run->run.settings["pipeline.memory"] = "200MiB";
  run->run.memory_bytes = int64_t{8} << 30;
}

}  // namespace headrace::analysis
