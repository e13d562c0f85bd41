// Runs that synthetic_run.h cannot make: one thread that loads and computes in turn, and a pipeline
// beside other programs on the same cores.
#pragma once
#include <string>
#include <vector>

#include "analysis/statistics/statistics.h"
#include "tests/analysis/synthetic_run.h"

namespace headrace::analysis {

// What one request for a batch and one step cost on the consumer's thread, in seconds.
struct OneThread {
  double load_cpu_s = 0.0035, load_blocked_s = 0;
  double outside_s = 0;  // of the request, in no operator, on the core
  double step_cpu_s = 0.002, step_blocked_s = 0;
  double cores = 2;
  int level = 3;
};

// A wrapped loader without workers: its operators run inside the consumer's thread, and its stage
// has no thread of its own.
inline RunView RecordOneThread(const OneThread& costs, double seconds, uint64_t seed) {
  RunView view;
  view.run.run_id = 1;
  view.run.name = "one thread";
  view.run.state = "complete";
  view.run.program = "python";
  view.run.accounting_level = costs.level;
  view.run.cores_count = costs.cores;
  view.run.cores_bound_by = "affinity";
  view.run.memory_bytes = int64_t{8} << 30;
  constexpr double kWindowS = 0.5;
  Random random(seed);
  const auto operator_of = [&](double cpu_s, double blocked_s, int64_t steps, double factor) {
    OperatorCounters op;
    op.completions_count = steps;
    op.rows_count = 64 * steps;
    op.on_cpu_ns = Ns(cpu_s * factor * static_cast<double>(steps));
    op.busy_ns = *op.on_cpu_ns + Ns(blocked_s * factor * static_cast<double>(steps));
    if (costs.level >= 3) {
      op.blocked_ns = op.busy_ns - *op.on_cpu_ns;
      op.runnable_ns = 0;
    }
    return op;
  };
  const auto rows = static_cast<size_t>(seconds / kWindowS);
  WindowRow all;
  all.operators.resize(2);
  all.stages.resize(2);
  for (size_t w = 0; w < rows; ++w) {
    const double load_s = costs.load_cpu_s + costs.load_blocked_s + costs.outside_s;
    const double step_s = costs.step_cpu_s + costs.step_blocked_s;
    const double factor = 1 + 0.02 * random.Normal();
    const auto steps = static_cast<int64_t>(kWindowS / (factor * (load_s + step_s)));
    WindowRow window;
    window.start_ns = Ns(kWindowS * static_cast<double>(w));
    window.duration_ns = Ns(kWindowS);
    window.operators = {operator_of(costs.load_cpu_s, costs.load_blocked_s, steps, factor),
                        operator_of(costs.step_cpu_s, costs.step_blocked_s, steps, factor)};
    StageCounters loader, trainer;
    loader.parallelism_count = 0;
    loader.on_cpu_ns = loader.runnable_ns = 0;
    trainer.parallelism_count = 1;
    trainer.lifetime_ns = Ns(kWindowS);
    trainer.on_cpu_ns = *window.operators[0].on_cpu_ns + *window.operators[1].on_cpu_ns +
                        Ns(costs.outside_s * factor * static_cast<double>(steps));
    trainer.runnable_ns = 0;
    window.stages = {loader, trainer};
    const int64_t compute_ns = window.operators[1].busy_ns;
    window.steps = {steps, 64 * steps, Ns(load_s * factor * static_cast<double>(steps)),
                    compute_ns};
    for (size_t i = 0; i < 2; ++i) {
      OperatorCounters& sum = all.operators[i];
      const OperatorCounters& op = window.operators[i];
      sum.completions_count += op.completions_count;
      sum.rows_count += op.rows_count;
      sum.busy_ns += op.busy_ns;
      sum.on_cpu_ns = sum.on_cpu_ns.value_or(0) + *op.on_cpu_ns;
      if (op.blocked_ns) sum.blocked_ns = sum.blocked_ns.value_or(0) + *op.blocked_ns;
      if (op.runnable_ns) sum.runnable_ns = 0;
      all.stages[i].lifetime_ns += window.stages[i].lifetime_ns;
      all.stages[i].on_cpu_ns = all.stages[i].on_cpu_ns.value_or(0) + *window.stages[i].on_cpu_ns;
      all.stages[i].runnable_ns = 0;
    }
    all.steps.steps_count += steps;
    all.steps.rows_count += 64 * steps;
    all.steps.wait_ns += window.steps.wait_ns;
    all.steps.compute_ns += compute_ns;
    view.windows.push_back(std::move(window));
  }
  const char* stages[] = {"loader", "trainer"};
  const char* operators[] = {"decompress", "step"};
  const char* kinds[] = {"decompress", "consumer"};
  for (size_t i = 0; i < 2; ++i) {
    StageRow stage;
    static_cast<StageCounters&>(stage) = all.stages[i];
    stage.name = stages[i];
    stage.stage_index = static_cast<int64_t>(i);
    stage.last_parallelism_count = i == 0 ? 0 : 1;
    view.stages.push_back(stage);
    OperatorRow op;
    static_cast<OperatorCounters&>(op) = all.operators[i];
    op.name = operators[i];
    op.kind = kinds[i];
    op.stage = stages[i];
    op.stage_index = static_cast<int64_t>(i);
    op.source = costs.level >= 3 ? "ebpf" : "thread_clock";
    view.operators.push_back(op);
  }
  static_cast<StepCounters&>(view.steps) = all.steps;
  view.run.duration_ns = view.steps.wall_ns = Ns(kWindowS * static_cast<double>(rows));
  return view;
}

// A loader with workers: what one batch costs a worker, and what taking it costs the trainer's
// thread beside its step, in seconds.
struct Received {
  int workers = 2;
  double make_cpu_s = 0.001, make_blocked_s = 0;
  double receive_cpu_s = 0.0001, receive_bytes = 1000;
  double unpickle_blocked_s = 0;
  double start_s = 0;    // blocked, of each batch's share of an epoch
  double epochs = 0.05;  // a batch
  double order_s = 0;    // waited for the batch that is due while others were there
  double wait_s = 0;     // waited for the workers
  double step_cpu_s = 0.002;
  double other_cpu_s = 0;  // of processes outside every operator
  double cores = 2;
  int ranks = 1;  // each a trainer; `workers` are of all of them together
};

inline RunView RecordReceived(const Received& costs, double seconds, uint64_t seed) {
  RunView view;
  view.run.run_id = 1;
  view.run.name = "received";
  view.run.state = "complete";
  view.run.program = "python";
  view.run.accounting_level = 3;
  view.run.cores_count = costs.cores;
  view.run.cores_bound_by = "affinity";
  view.run.memory_bytes = int64_t{8} << 30;
  constexpr double kWindowS = 0.5;
  enum { kMake, kReceive, kUnpickle, kStart, kOrder, kStep, kOperators };
  const double taken_s =
      costs.receive_cpu_s + costs.unpickle_blocked_s + costs.start_s + costs.order_s + costs.wait_s;
  Random random(seed);
  const auto rows = static_cast<size_t>(seconds / kWindowS);
  WindowRow all;
  all.operators.resize(kOperators);
  all.stages.resize(3);
  for (size_t w = 0; w < rows; ++w) {
    const double factor = 1 + 0.02 * random.Normal();
    const auto steps =
        static_cast<int64_t>(costs.ranks * kWindowS / (factor * (taken_s + costs.step_cpu_s)));
    const auto n = static_cast<double>(steps);
    WindowRow window;
    window.start_ns = Ns(kWindowS * static_cast<double>(w));
    window.duration_ns = Ns(kWindowS);
    const auto add = [&](double cpu_s, double blocked_s, double visits) {
      OperatorCounters op;
      op.completions_count = std::llround(visits * n);
      op.rows_count = op.completions_count;
      op.on_cpu_ns = Ns(cpu_s * factor * n);
      op.busy_ns = *op.on_cpu_ns + Ns(blocked_s * factor * n);
      op.blocked_ns = op.busy_ns - *op.on_cpu_ns;
      op.runnable_ns = 0;
      window.operators.push_back(op);
    };
    add(costs.make_cpu_s, costs.make_blocked_s, 1);
    add(costs.receive_cpu_s, 0, 1);
    add(0, costs.unpickle_blocked_s, 1);
    add(0, costs.start_s, costs.epochs);
    add(0, 0, 0);
    add(costs.step_cpu_s, 0, 1);
    OperatorCounters& make = window.operators[kMake];
    make.wait_out_ns = std::max<int64_t>(0, costs.workers * Ns(kWindowS) - make.busy_ns);
    window.operators[kReceive].bytes_in_bytes = std::llround(costs.receive_bytes * n);
    window.operators[kReceive].wait_in_ns = Ns(costs.wait_s * factor * n);
    window.operators[kOrder].wait_in_ns = Ns(costs.order_s * factor * n);
    StageCounters workers, receiver, trainer;
    workers.parallelism_count = costs.workers;
    workers.lifetime_ns = costs.workers * Ns(kWindowS);
    workers.on_cpu_ns = make.on_cpu_ns;
    receiver.on_cpu_ns = 0;
    trainer.parallelism_count = costs.ranks;
    trainer.lifetime_ns = costs.ranks * Ns(kWindowS);
    trainer.on_cpu_ns = *window.operators[kReceive].on_cpu_ns + *window.operators[kStep].on_cpu_ns;
    workers.runnable_ns = receiver.runnable_ns = trainer.runnable_ns = 0;
    window.stages = {workers, receiver, trainer};
    window.steps = {steps, steps, Ns(taken_s * factor * n), window.operators[kStep].busy_ns};
    for (size_t i = 0; i < kOperators; ++i) {
      OperatorCounters& sum = all.operators[i];
      const OperatorCounters& op = window.operators[i];
      sum.completions_count += op.completions_count;
      sum.rows_count += op.rows_count;
      sum.bytes_in_bytes += op.bytes_in_bytes;
      sum.busy_ns += op.busy_ns;
      sum.wait_in_ns += op.wait_in_ns;
      sum.wait_out_ns += op.wait_out_ns;
      sum.on_cpu_ns = sum.on_cpu_ns.value_or(0) + *op.on_cpu_ns;
      sum.blocked_ns = sum.blocked_ns.value_or(0) + *op.blocked_ns;
      sum.runnable_ns = 0;
    }
    for (size_t i = 0; i < 3; ++i) {
      all.stages[i].lifetime_ns += window.stages[i].lifetime_ns;
      all.stages[i].on_cpu_ns = all.stages[i].on_cpu_ns.value_or(0) + *window.stages[i].on_cpu_ns;
      all.stages[i].runnable_ns = 0;
    }
    all.steps.steps_count += steps;
    all.steps.rows_count += steps;
    all.steps.wait_ns += window.steps.wait_ns;
    all.steps.compute_ns += window.steps.compute_ns;
    view.windows.push_back(std::move(window));
  }
  const char* stages[] = {"workers", "receiver", "trainer"};
  const int64_t threads[] = {costs.workers, 0, costs.ranks}, most[] = {0, costs.ranks, costs.ranks};
  const char* operators[] = {"getitem", "receive", "unpickle", "start_workers", "in_order", "step"};
  const char* kinds[] = {"fetch", "receive", "deserialize", "start", "order", "consumer"};
  const size_t stage_of[] = {0, 1, 1, 1, 1, 2};
  for (size_t i = 0; i < 3; ++i) {
    StageRow stage;
    static_cast<StageCounters&>(stage) = all.stages[i];
    stage.name = stages[i];
    stage.stage_index = static_cast<int64_t>(i);
    stage.last_parallelism_count = threads[i];
    stage.max_parallelism_count = most[i];
    stage.parallelism_count = static_cast<double>(threads[i]);
    view.stages.push_back(stage);
  }
  for (size_t i = 0; i < kOperators; ++i) {
    OperatorRow op;
    static_cast<OperatorCounters&>(op) = all.operators[i];
    op.name = operators[i];
    op.kind = kinds[i];
    op.stage = stages[stage_of[i]];
    op.stage_index = static_cast<int64_t>(stage_of[i]);
    op.source = "ebpf";
    view.operators.push_back(op);
  }
  QueueRow queue;
  queue.name = "batches";
  queue.producer_stage = "workers";
  queue.consumer_stage = "receiver";
  queue.capacity_count = 2 * costs.workers;
  queue.puts_count = queue.gets_count = all.steps.steps_count;
  view.queues.push_back(queue);
  for (WindowRow& window : view.windows) window.queues.emplace_back();
  static_cast<StepCounters&>(view.steps) = all.steps;
  view.run.duration_ns = view.steps.wall_ns = Ns(kWindowS * static_cast<double>(rows));
  if (costs.other_cpu_s > 0) {
    double cpu_ns = costs.other_cpu_s * 1e9 * static_cast<double>(all.steps.steps_count);
    for (const StageCounters& stage : all.stages) cpu_ns += static_cast<double>(*stage.on_cpu_ns);
    HostRow process;
    process.metric = "process_cpu_ns";
    process.last_value = cpu_ns;
    view.hosts.push_back(process);
  }
  return view;
}

// `pipeline` on its cores beside `others` threads of other programs, which compute all the time.
// The recording knows of these what a host's counters tell.
inline RunView RecordBeside(const SimulatedPipeline& pipeline, int others, double seconds,
                            uint64_t seed) {
  SimulatedPipeline all = pipeline;
  all.stages.clear();
  const auto n = static_cast<size_t>(others);
  for (size_t i = 0; i < n; ++i) {
    SimulatedStage& other =
        all.stages.emplace_back(SimulatedStage{"other" + std::to_string(i), 1, 1, {}});
    other.operators.push_back({"other", 1e9, 0, 0, 0, 0, -1});
    other.inputs.emplace();
  }
  for (SimulatedStage stage : pipeline.stages) {
    if (all.stages.size() == n) {
      stage.inputs.emplace();
    } else if (!stage.inputs) {
      stage.inputs = std::vector<SimulatedInput>{{all.stages.size() - 1, 1}};
    }
    all.stages.push_back(std::move(stage));
  }
  RunView run = Record(all, seconds, seed);
  const auto cut = [n](auto* rows) {
    rows->erase(rows->begin(), rows->begin() + static_cast<std::ptrdiff_t>(n));
  };
  double own_ns = 0;
  cut(&run.stages);
  cut(&run.operators);
  cut(&run.queues);
  for (StageRow& stage : run.stages) own_ns += static_cast<double>(stage.on_cpu_ns.value_or(0));
  for (WindowRow& window : run.windows) {
    cut(&window.stages);
    cut(&window.operators);
    cut(&window.queues);
  }
  const auto host = [&](const char* metric, const char* unit, double value) {
    run.hosts.push_back({metric, unit, "counter", value, value, value, value});
  };
  // Threads that compute all the time leave no core idle.
  const double busy = std::min(pipeline.cores, others + own_ns * 1e-9 / seconds);
  host("host_busy_cores", "cores", busy);
  host("host_cores", "cores", pipeline.cores);
  host("process_cpu_ns", "ns", own_ns);
  host("host_peer_cpu_ns", "ns",
       busy * 1e9 * seconds - own_ns);  // none is in another control group
  return run;
}

}  // namespace headrace::analysis
