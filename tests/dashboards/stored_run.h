// A run made by the simulator, in a store of its own: for what reads the store's views.
#pragma once
#include <stdlib.h>
#include <unistd.h>

#include <filesystem>
#include <map>
#include <string>

#include "collectors/store/store.h"
#include "tests/analysis/synthetic_run.h"

namespace headrace::dashboards {

// A folder that is removed with all that is in it.
class TemporaryStore {
 public:
  TemporaryStore() {
    char folder[] = "/tmp/headrace-pages-XXXXXX";
    folder_ = mkdtemp(folder);
  }
  ~TemporaryStore() { std::filesystem::remove_all(folder_); }
  TemporaryStore(const TemporaryStore&) = delete;
  TemporaryStore& operator=(const TemporaryStore&) = delete;

  const std::string& folder() const { return folder_; }
  std::string path() const { return folder_ + "/runs.db"; }

 private:
  std::string folder_;
};

inline int64_t StageIdOf(const analysis::RunView& run, const std::string& stage) {
  for (size_t i = 0; i < run.stages.size(); ++i) {
    if (run.stages[i].name == stage) return static_cast<int64_t>(i);
  }
  return -1;
}

// The window as a recorder would have given it to the store.
inline collectors::IntervalSample SampleOf(const analysis::RunView& run,
                                           const analysis::WindowRow& window) {
  collectors::IntervalSample sample;
  sample.start_ns = window.start_ns;
  sample.duration_ns = window.duration_ns;
  for (size_t i = 0; i < run.stages.size(); ++i) {
    collectors::StageSample stage;
    stage.id = static_cast<int64_t>(i);
    stage.name = run.stages[i].name;
    stage.index = run.stages[i].stage_index;
    stage.parallelism = run.stages[i].last_parallelism_count;
    stage.max_parallelism = run.stages[i].max_parallelism_count;
    stage.parallelism_ns = static_cast<int64_t>(window.stages[i].parallelism_count *
                                                static_cast<double>(window.duration_ns));
    stage.lifetime_ns = window.stages[i].lifetime_ns;
    stage.unattributed_ns = window.stages[i].unattributed_ns.value_or(0);
    stage.on_cpu_ns = window.stages[i].on_cpu_ns;
    stage.runnable_ns = window.stages[i].runnable_ns;
    stage.observed_ns = window.duration_ns;
    sample.stages.push_back(stage);
  }
  for (size_t i = 0; i < run.operators.size(); ++i) {
    const analysis::OperatorCounters& counted = window.operators[i];
    collectors::OperatorSample op;
    op.id = static_cast<int64_t>(i);
    op.name = run.operators[i].name;
    op.kind = run.operators[i].kind;
    op.stage_id = StageIdOf(run, run.operators[i].stage);
    op.position = run.operators[i].position_index;
    op.completions = counted.completions_count;
    op.rows = counted.rows_count;
    op.in_bytes = counted.bytes_in_bytes;
    op.out_bytes = counted.bytes_out_bytes;
    op.busy_ns = counted.busy_ns;
    op.lock_wait_ns = counted.lock_wait_ns;
    op.wait_in_ns = counted.wait_in_ns;
    op.wait_out_ns = counted.wait_out_ns;
    op.on_cpu_ns = counted.on_cpu_ns;
    op.runnable_ns = counted.runnable_ns.value_or(0);
    op.time_source = run.operators[i].source;
    sample.operators.push_back(op);
  }
  for (size_t i = 0; i < run.queues.size(); ++i) {
    const analysis::QueueCounters& counted = window.queues[i];
    const auto share = [&](const analysis::Real& ratio) {
      return static_cast<int64_t>(ratio.value_or(0) * static_cast<double>(window.duration_ns));
    };
    collectors::QueueSample queue;
    queue.id = static_cast<int64_t>(i);
    queue.name = run.queues[i].name;
    queue.producer_stage_id = StageIdOf(run, run.queues[i].producer_stage);
    if (!run.queues[i].consumer_stage.empty()) {
      queue.consumer_stage_id = StageIdOf(run, run.queues[i].consumer_stage);
    }
    queue.capacity = run.queues[i].capacity_count;
    queue.observed_ns = window.duration_ns;
    queue.capacity_ns = queue.capacity * window.duration_ns;
    queue.occupancy_ns = share(counted.mean_occupancy_ratio) * queue.capacity;
    queue.full_ns = share(counted.full_ratio);
    queue.empty_ns = share(counted.empty_ratio);
    queue.puts = counted.puts_count;
    queue.gets = counted.gets_count;
    sample.queues.push_back(queue);
  }
  for (size_t i = 0; i < run.resources.size(); ++i) {
    collectors::ResourceSample resource;
    resource.id = static_cast<int64_t>(i);
    resource.name = run.resources[i].name;
    resource.kind = run.resources[i].kind;
    resource.servers = run.resources[i].servers_count;
    resource.acquisitions = window.resources[i].acquisitions_count;
    resource.wait_ns = window.resources[i].wait_ns;
    resource.hold_ns = window.resources[i].hold_ns;
    sample.resources.push_back(resource);
  }
  const analysis::StepCounters& steps = window.steps;
  sample.steps.steps = steps.steps_count;
  sample.steps.rows = steps.rows_count;
  sample.steps.wait_ns = steps.wait_ns;
  sample.steps.compute_ns = steps.compute_ns;
  if (steps.steps_count > 0) {
    sample.steps.first_ns = window.start_ns;
    sample.steps.last_ns = window.start_ns + window.duration_ns;
    const int64_t each = (steps.wait_ns + steps.compute_ns) / steps.steps_count;
    sample.steps.durations_ns.assign(static_cast<size_t>(steps.steps_count), each);
  }
  return sample;
}

inline collectors::RunInfo InfoOf(const analysis::RunView& run, const std::string& name) {
  collectors::RunInfo info;
  info.name = name;
  info.program = "rm1";
  info.pid = getpid();
  info.pipeline_path = run.run.pipeline_path;
  info.started_realtime_ns = 1'700'000'000'000'000'000;
  info.accounting_level = run.run.accounting_level;
  info.cores_count = run.run.cores_count;
  info.cores_bound_by = run.run.cores_bound_by;
  info.memory_bytes = run.run.memory_bytes;
  char host[256] = "";
  gethostname(host, sizeof host - 1);
  info.hostname = host;
  return info;
}

// What the machine's counters told of the whole run.
inline collectors::MeasurementBatch HostsOf(const analysis::RunView& run) {
  collectors::MeasurementBatch batch;
  for (const analysis::HostRow& host : run.hosts) {
    const auto id = static_cast<int64_t>(batch.totals.size());
    const bool gauge = host.unit == "cores";
    batch.metrics.push_back(
        {host.metric, host.unit, gauge ? "gauge" : "counter", host.source, "", ""});
    batch.definitions.push_back({id, host.metric, host.source, {}, {}, "", "", "", {}});
    const double value = host.last_value.value_or(0);
    batch.totals.push_back({id, 1, host.mean_value.value_or(0), value, value, value, {}});
  }
  return batch;
}

// Adds the run to the store, finished or still being recorded. Returns its id.
inline int64_t StoreRun(collectors::RunStore& store, const analysis::RunView& run,
                        const std::string& name, bool finished = true) {
  const int64_t id = store.BeginRun(InfoOf(run, name));
  std::vector<collectors::IntervalSample> samples;
  for (const analysis::WindowRow& window : run.windows) samples.push_back(SampleOf(run, window));
  store.Append(id, samples, HostsOf(run));
  store.SetProbe(id, "accounts", "active", "", "");
  store.SetProbe(id, "hardware counters", "unavailable", "this machine exposes no PMU",
                 "bare metal");
  if (finished) store.FinishRun(id, collectors::RunState::kComplete);
  return id;
}

// What a probe would have measured of the run's threads, of one that is seen from outside.
inline collectors::MeasurementBatch MeasuredOf(const analysis::RunView& run) {
  collectors::MeasurementBatch batch;
  for (const std::string& metric : run.metrics)
    batch.metrics.push_back({metric, "ns", "counter", "ebpf", "", ""});
  for (const analysis::ProcessRow& process : run.processes) {
    collectors::ProcessRow row;
    row.id = process.process_id;
    row.pid = process.pid;
    row.parent_pid = process.parent_pid;
    row.name = process.process;
    row.command = process.command;
    row.role = process.role;
    batch.processes.push_back(row);
  }
  std::map<std::string, int64_t> ids;
  for (const analysis::CourseRow& row : run.course) {
    const std::string key = row.metric + '\n' + std::to_string(row.process_id) + '\n' + row.thread +
                            '\n' + row.subject + '\n' + row.cause;
    const auto [found, is_new] = ids.emplace(key, static_cast<int64_t>(ids.size()));
    if (is_new) {
      batch.definitions.push_back({found->second, row.metric, "ebpf", std::nullopt, row.process_id,
                                   row.thread, row.subject, row.cause, std::nullopt});
      batch.totals.push_back({found->second, 0, 0, 0, 0, 0, std::nullopt});
    }
    batch.totals[static_cast<size_t>(found->second)].last += row.value;
    batch.intervals.push_back(
        {found->second, row.slice * run.course_slice_ns, run.course_slice_ns, row.value});
  }
  return batch;
}

// Adds a run that is seen from outside, finished. Returns its id.
inline int64_t StoreOutsideRun(collectors::RunStore& store, const analysis::RunView& run,
                               const std::string& name) {
  collectors::RunInfo info = InfoOf(run, name);
  info.command = "python train.py";
  const int64_t id = store.BeginRun(info);
  collectors::IntervalSample whole;
  whole.duration_ns = run.run.duration_ns;
  store.Append(id, {whole}, MeasuredOf(run));
  store.FinishRun(id, collectors::RunState::kComplete);
  return id;
}

}  // namespace headrace::dashboards
