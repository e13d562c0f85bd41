#include "tests/validation/recorder.h"

#include <algorithm>
#include <cmath>

namespace headrace::validation {
namespace {

using analysis::RunView;
using analysis::WindowRow;

constexpr int64_t kRows = 64;  // of a batch

int64_t Ns(double seconds) { return std::llround(seconds * 1e9); }

// `bytes`: what all completions together put out.
analysis::OperatorCounters Counters(const Ledger::PartTimes& a, const Ledger::PartTimes& b,
                                    double bytes, int level) {
  analysis::OperatorCounters op;
  op.completions_count = a.completions - b.completions;
  op.rows_count = op.completions_count;
  op.bytes_in_bytes = op.bytes_out_bytes = std::llround(bytes);
  op.on_cpu_ns = Ns(a.cpu_s - b.cpu_s);
  op.lock_wait_ns = Ns(a.lock_wait_s - b.lock_wait_s);
  const int64_t blocked = Ns(a.blocked_s - b.blocked_s), runnable = Ns(a.runnable_s - b.runnable_s);
  op.busy_ns = *op.on_cpu_ns + blocked + runnable;
  if (level >= 3) {
    op.blocked_ns = blocked;
    op.runnable_ns = runnable;
  }
  op.wait_in_ns = Ns(a.in_s - b.in_s);
  op.wait_out_ns = Ns(a.out_s - b.out_s);
  return op;
}

// What happened from `b` to `a`.
WindowRow Between(const World& world, const Ledger& a, const Ledger& b, int level) {
  WindowRow window;
  const double elapsed = a.time_s - b.time_s;
  window.start_ns = Ns(b.time_s);
  window.duration_ns = Ns(elapsed);
  for (size_t s = 0; s < world.stations.size(); ++s) {
    const Station& station = world.stations[s];
    analysis::StageCounters stage;
    stage.parallelism_count = station.threads;
    stage.lifetime_ns = Ns(elapsed * station.threads);
    stage.on_cpu_ns = stage.runnable_ns = stage.unattributed_ns = 0;
    for (size_t i = 0; i < a.parts[s].size(); ++i) {
      const int64_t completions = a.parts[s][i].completions - b.parts[s][i].completions;
      // What a filter dropped is not put out.
      const double emitted = station.emit >= 1
                                 ? station.emit * static_cast<double>(completions)
                                 : static_cast<double>(a.queues[s].puts - b.queues[s].puts);
      window.operators.push_back(
          Counters(a.parts[s][i], b.parts[s][i], emitted * station.element_bytes, level));
      *stage.on_cpu_ns += *window.operators.back().on_cpu_ns;
      *stage.runnable_ns += Ns(a.parts[s][i].runnable_s - b.parts[s][i].runnable_s);
    }
    window.stages.push_back(stage);
    analysis::QueueCounters queue;
    const Ledger::QueueTimes &now = a.queues[s], &then = b.queues[s];
    if (elapsed > 0) {
      queue.mean_occupancy_ratio = (now.level_s - then.level_s) / elapsed / station.queue;
      queue.full_ratio = (now.full_s - then.full_s) / elapsed;
      queue.empty_ratio = (now.empty_s - then.empty_s) / elapsed;
    }
    queue.puts_count = now.puts - then.puts;
    queue.gets_count = now.gets - then.gets;
    window.queues.push_back(queue);
  }
  for (size_t r = 0; r < world.shared.size(); ++r) {
    window.resources.push_back({a.shared[r].uses - b.shared[r].uses,
                                Ns(a.shared[r].wait_s - b.shared[r].wait_s),
                                Ns(a.shared[r].hold_s - b.shared[r].hold_s), 0});
  }
  const int64_t steps = a.steps - b.steps;
  window.steps = {steps, kRows * steps, Ns(a.step_wait_s - b.step_wait_s),
                  Ns(a.step_compute_s - b.step_compute_s)};
  return window;
}

Ledger Nothing(const World& world) {
  Ledger ledger;
  for (const Station& station : world.stations) ledger.parts.emplace_back(station.parts.size());
  ledger.queues.resize(world.stations.size());
  ledger.shared.resize(world.shared.size());
  return ledger;
}

// By what a real operator of that use would be called.
const char* KindOf(const World& world, const Part& part, bool source) {
  if (part.shared >= 0) {
    return world.shared[static_cast<size_t>(part.shared)].device ? "read" : "lock";
  }
  return source ? "source" : part.blocked_s > part.cpu_s ? "sleep" : "spin";
}

void AddRows(const World& world, const WindowRow& all, RunView* view) {
  size_t index = 0;
  std::vector<std::string> reader(world.stations.size());
  for (const Station& station : world.stations) {
    for (size_t input : station.inputs) reader[input] = station.name;
  }
  for (size_t s = 0; s < world.stations.size(); ++s) {
    const Station& station = world.stations[s];
    analysis::StageRow stage;
    static_cast<analysis::StageCounters&>(stage) = all.stages[s];
    stage.name = station.name;
    stage.stage_index = static_cast<int64_t>(s);
    stage.last_parallelism_count = station.threads;
    stage.max_parallelism_count = station.sequential ? 1 : 0;
    view->stages.push_back(stage);
    for (size_t i = 0; i < station.parts.size(); ++i) {
      analysis::OperatorRow op;
      static_cast<analysis::OperatorCounters&>(op) = all.operators[index++];
      op.name = station.parts[i].name;
      op.kind = KindOf(world, station.parts[i], station.inputs.empty());
      op.stage = station.name;
      op.stage_index = static_cast<int64_t>(s);
      op.position_index = static_cast<int64_t>(i);
      op.source = op.blocked_ns ? "ebpf" : "thread_clock";
      view->operators.push_back(op);
    }
    analysis::QueueRow queue;
    static_cast<analysis::QueueCounters&>(queue) = all.queues[s];
    queue.name = station.name + ".out";
    queue.producer_stage = station.name;
    queue.consumer_stage = reader[s];
    queue.capacity_count = station.queue;
    view->queues.push_back(queue);
  }
  for (size_t r = 0; r < world.shared.size(); ++r) {
    analysis::ResourceRow row;
    static_cast<analysis::ResourceCounters&>(row) = all.resources[r];
    row.name = world.shared[r].name;
    row.kind = world.shared[r].device ? "device" : "lock";
    row.servers_count = world.shared[r].servers;
    view->resources.push_back(row);
  }
  static_cast<analysis::StepCounters&>(view->steps) = all.steps;
}

}  // namespace

RunView Record(const World& world, const Recording& how, uint64_t seed) {
  RunView view;
  view.run.run_id = 1;
  view.run.name = "world";
  view.run.state = "complete";
  view.run.pipeline_path = "pipeline.toml";
  view.run.accounting_level = how.level;
  for (const Station& station : world.stations) {
    if (!station.ordered) continue;
    view.run.element_order = "file";
    view.run.order_window_count = station.window;
  }
  view.run.cores_count = world.cores;
  view.run.cores_bound_by = "affinity";
  view.run.memory_bytes = std::llround(world.memory_bytes);
  const Ledger nothing = Nothing(world);
  Ledger before = nothing;
  const Ledger end =
      Play(world, int64_t{1} << 60, how.seconds, seed, how.period_s, [&](const Ledger& now) {
        view.windows.push_back(Between(world, now, before, how.level));
        before = now;
      });
  const WindowRow all = Between(world, end, nothing, how.level);
  view.run.duration_ns = view.steps.wall_ns = all.duration_ns;
  AddRows(world, all, &view);
  double cpu_ns = 0;
  for (const analysis::StageRow& stage : view.stages) {
    cpu_ns += static_cast<double>(*stage.on_cpu_ns);
  }
  const auto host = [&](const char* metric, const char* unit, double value) {
    view.hosts.push_back({metric, unit, "counter", value, value, value, value});
  };
  host("process_cpu_ns", "ns", cpu_ns);
  host("host_busy_cores", "cores", end.time_s > 0 ? end.busy_cores_s / end.time_s : 0);
  host("host_cores", "cores", world.cores);
  host("host_peer_cpu_ns", "ns", end.busy_cores_s * 1e9 - cpu_ns);
  host("process_rss_bytes", "bytes", MemoryOf(world));
  return view;
}

}  // namespace headrace::validation
