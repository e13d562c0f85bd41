#include "analysis/run/run_slice.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>

#include "analysis/run/counter_sums.h"
#include "base/error.h"
#include "base/units.h"

namespace headrace::analysis {
namespace {

// Ratios are weighted with the windows' time, here multiplied by it.
void AddWeighted(QueueCounters* sum, const QueueCounters& x, double ns) {
  const auto weigh = [&](Real* to, const Real& value) {
    if (value) *to = to->value_or(0) + *value * ns;
  };
  weigh(&sum->mean_occupancy_ratio, x.mean_occupancy_ratio);
  weigh(&sum->full_ratio, x.full_ratio);
  weigh(&sum->empty_ratio, x.empty_ratio);
  sum->puts_count += x.puts_count;
  sum->gets_count += x.gets_count;
}

// The windows' counters in place of the run's.
void SumUp(RunView* part) {
  for (OperatorRow& op : part->operators) static_cast<OperatorCounters&>(op) = {};
  for (StageRow& stage : part->stages) static_cast<StageCounters&>(stage) = {};
  for (QueueRow& queue : part->queues) static_cast<QueueCounters&>(queue) = {};
  for (ResourceRow& resource : part->resources) static_cast<ResourceCounters&>(resource) = {};
  static_cast<StepCounters&>(part->steps) = {};
  double all_ns = 0;
  bool first = true;
  for (const WindowRow& window : part->windows) {
    const double ns = static_cast<double>(window.duration_ns);
    all_ns += ns;
    for (size_t i = 0; i < std::min(part->operators.size(), window.operators.size()); ++i) {
      Add(&part->operators[i], window.operators[i], first);
    }
    for (size_t i = 0; i < std::min(part->stages.size(), window.stages.size()); ++i) {
      StageRow& stage = part->stages[i];
      const StageCounters& x = window.stages[i];
      stage.parallelism_count += x.parallelism_count * ns;
      stage.lifetime_ns += x.lifetime_ns;
      Add(&stage.on_cpu_ns, x.on_cpu_ns, first);
      Add(&stage.runnable_ns, x.runnable_ns, first);
      Add(&stage.unattributed_ns, x.unattributed_ns, first);
    }
    for (size_t i = 0; i < std::min(part->queues.size(), window.queues.size()); ++i) {
      AddWeighted(&part->queues[i], window.queues[i], ns);
    }
    for (size_t i = 0; i < std::min(part->resources.size(), window.resources.size()); ++i) {
      part->resources[i].acquisitions_count += window.resources[i].acquisitions_count;
      part->resources[i].wait_ns += window.resources[i].wait_ns;
      part->resources[i].hold_ns += window.resources[i].hold_ns;
      part->resources[i].moved_bytes += window.resources[i].moved_bytes;
    }
    part->steps.steps_count += window.steps.steps_count;
    part->steps.rows_count += window.steps.rows_count;
    part->steps.wait_ns += window.steps.wait_ns;
    part->steps.compute_ns += window.steps.compute_ns;
    first = false;
  }
  if (all_ns <= 0) return;
  for (StageRow& stage : part->stages) stage.parallelism_count /= all_ns;
  for (QueueRow& queue : part->queues) {
    for (Real* ratio : {&queue.mean_occupancy_ratio, &queue.full_ratio, &queue.empty_ratio}) {
      if (*ratio) **ratio /= all_ns;
    }
  }
}

double CpuOf(const RunView& run) {
  double ns = 0;
  for (const StageRow& stage : run.stages) ns += static_cast<double>(stage.on_cpu_ns.value_or(0));
  return ns;
}

void Set(HostRow* host, double value) {
  host->mean_value = host->minimum_value = host->maximum_value = host->last_value = value;
}

// Cores of the machine that were busy in the windows, on average; none where that was not recorded
// over time.
Real BusyCores(const RunView& run, const std::vector<size_t>& windows) {
  double busy_ns = 0, seen_ns = 0;
  for (const size_t index : windows) {
    const WindowRow& window = run.windows[index];
    const int64_t end_ns = window.start_ns + window.duration_ns;
    auto busy = std::partition_point(
        run.busy_cores.begin(), run.busy_cores.end(),
        [&](const auto& each) { return each.start_ns + each.duration_ns <= window.start_ns; });
    for (; busy != run.busy_cores.end() && busy->start_ns < end_ns; ++busy) {
      const int64_t from_ns = std::max(busy->start_ns, window.start_ns);
      const int64_t to_ns = std::min(busy->start_ns + busy->duration_ns, end_ns);
      const auto ns = static_cast<double>(std::max<int64_t>(0, to_ns - from_ns));
      busy_ns += busy->cores * ns;
      seen_ns += ns;
    }
  }
  return seen_ns > 0 ? Real(busy_ns / seen_ns) : std::nullopt;
}

// Figures of the whole run that the model reads, as they would have been recorded for the part.
// `busy_cores`: of the part, where known.
void ScaleHosts(const RunView& run, const Real& busy_cores, RunView* part) {
  const double all_ns = static_cast<double>(run.run.duration_ns);
  const double part_ns = static_cast<double>(part->run.duration_ns);
  if (all_ns <= 0 || part_ns <= 0) return;
  const double all_cpu = CpuOf(run), part_cpu = CpuOf(*part);
  const HostRow* process = run.FindHost("process_cpu_ns");
  const double all_process =
      process != nullptr && process->last_value ? *process->last_value : all_cpu;
  const double part_process = all_cpu > 0 ? all_process * part_cpu / all_cpu : all_process;
  for (HostRow& host : part->hosts) {
    if (host.metric == "process_cpu_ns" && host.last_value) Set(&host, part_process);
    if ((host.metric == "collector_cpu_ns" || host.metric == "host_peer_cpu_ns") &&
        host.last_value) {
      Set(&host, *host.last_value * part_ns / all_ns);
    }
    if (host.metric == "host_busy_cores" && busy_cores) {
      Set(&host, *busy_cores);
    } else if (host.metric == "host_busy_cores" && host.mean_value) {
      const double others = std::max(0.0, *host.mean_value - all_process / all_ns);
      Set(&host, others + part_process / part_ns);
    }
    // It was more when queues were longer, which tells nothing of how they are now.
    if (host.metric == "process_rss_bytes" && host.last_value) Set(&host, *host.last_value);
  }
  const double steps = static_cast<double>(run.steps.steps_count);
  if (steps <= 0) return;
  const double share = static_cast<double>(part->steps.steps_count) / steps;
  for (HostRow& host : part->hosts) {
    if (host.metric == "process_read_bytes" && host.last_value)
      Set(&host, *host.last_value * share);
  }
  for (MeasurementRow& row : part->measurements) {
    if (!row.value) continue;
    if (row.kind == "counter") row.value = *row.value * share;
    if (row.metric == "nic_use_ratio") row.value = *row.value * share * all_ns / part_ns;
  }
}

// What devices told of the window, moved by `moved_ns`. `longest_ns`: of their rows, which are by
// start.
void AddAcceleratorUse(const RunView& run, const WindowRow& window, int64_t longest_ns,
                       int64_t moved_ns, RunView* part) {
  const int64_t window_end_ns = window.start_ns + window.duration_ns;
  const auto& rows = run.accelerator_use;
  auto row = std::partition_point(rows.begin(), rows.end(), [&](const auto& each) {
    return each.start_ns + longest_ns <= window.start_ns;
  });
  for (; row != rows.end() && row->start_ns < window_end_ns; ++row) {
    const int64_t from = std::max(row->start_ns, window.start_ns);
    const int64_t to = std::min(row->start_ns + row->duration_ns, window_end_ns);
    if (from >= to) continue;
    part->accelerator_use.push_back({from + moved_ns, to - from, row->device, row->use_ratio});
  }
}

// What is said where no window lies wholly between the times.
Error NoWindowBetween(const RunView& run, const RunTimes& times) {
  const std::string where = fmt::format("run {}", run.run.run_id);
  if (run.windows.empty())
    return Error(ExitCode::kInconclusive,
                 "this run has no course over time: it was seen from outside, or too short", where,
                 "leave out the times: what is known is of the whole run");
  int64_t start_ns = INT64_MAX, end_ns = 0;  // of the windows that lie there in part
  for (const WindowRow& window : run.windows) {
    const int64_t window_end_ns = window.start_ns + window.duration_ns;
    if (window.start_ns >= times.end_ns || window_end_ns <= times.start_ns) continue;
    start_ns = std::min(start_ns, window.start_ns);
    end_ns = std::max(end_ns, window_end_ns);
  }
  if (end_ns == 0)
    return Error(ExitCode::kInconclusive,
                 fmt::format("nothing was recorded between these times; it lasted {}",
                             FormatDuration(static_cast<double>(run.run.duration_ns))),
                 where, "give times within it");
  constexpr int64_t kMs = 1'000'000;
  return Error(ExitCode::kInconclusive,
               "no interval of its course over time lies wholly between these times", where,
               fmt::format("those that do in part are from {}ms to {}ms", start_ns / kMs,
                           (end_ns + kMs - 1) / kMs));
}

}  // namespace

RunView PartOf(const RunView& run, RunTimes* times) {
  std::vector<size_t> windows;
  for (size_t w = 0; w < run.windows.size(); ++w) {
    const WindowRow& window = run.windows[w];
    if (window.start_ns >= times->start_ns && window.start_ns + window.duration_ns <= times->end_ns)
      windows.push_back(w);
  }
  if (windows.empty()) throw NoWindowBetween(run, *times);
  const WindowRow& last = run.windows[windows.back()];
  *times = {run.windows[windows.front()].start_ns, last.start_ns + last.duration_ns};
  return SliceOf(run, windows);
}

RunView SliceOf(const RunView& run, const std::vector<size_t>& windows) {
  RunView part;
  part.run = run.run;
  part.run.epoch_splits_count.reset();
  part.stages = run.stages;
  part.operators = run.operators;
  part.queues = run.queues;
  part.resources = run.resources;
  part.hosts = run.hosts;
  part.probes = run.probes;
  part.measurements = run.measurements;
  // Of single processes only the whole run is known.
  std::erase_if(part.measurements, [](const MeasurementRow& row) {
    return row.metric.starts_with("worker_") || row.metric.starts_with("rank_");
  });
  part.memory_ceiling_bytes_per_s = run.memory_ceiling_bytes_per_s;
  part.earlier_predictions = run.earlier_predictions;
  part.loads = run.loads;
  part.device_bytes = run.device_bytes;
  part.fetched_bytes = run.fetched_bytes;
  part.storage_points = run.storage_points;
  part.metrics = run.metrics;
  part.core_hour_price = run.core_hour_price;
  part.database_option = run.database_option;
  part.program = run.program;
  part.step_interpreter_ratio = run.step_interpreter_ratio;
  part.pools_interpreter_ratio = run.pools_interpreter_ratio;
  int64_t end_ns = 0, longest_use_ns = 0;
  for (const AcceleratorUseRow& use : run.accelerator_use) {
    longest_use_ns = std::max(longest_use_ns, use.duration_ns);
  }
  for (const size_t index : windows) {
    WindowRow window = run.windows[index];
    const int64_t moved_ns = end_ns - window.start_ns;
    for (const DeviceReadRow& read : run.device_reads) {
      if (read.start_ns < window.start_ns || read.start_ns >= window.start_ns + window.duration_ns)
        continue;
      part.device_reads.push_back({read.start_ns + moved_ns, read.duration_ns, read.read_bytes});
    }
    AddAcceleratorUse(run, window, longest_use_ns, moved_ns, &part);
    window.start_ns = end_ns;
    end_ns += window.duration_ns;
    part.windows.push_back(std::move(window));
  }
  part.run.duration_ns = part.steps.wall_ns = end_ns;
  SumUp(&part);
  ScaleHosts(run, BusyCores(run, windows), &part);
  return part;
}

}  // namespace headrace::analysis
