#include "analysis/run/read_run.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <map>

#include "analysis/run/control_groups.h"
#include "analysis/run/interpreter_waits.h"
#include "analysis/run/phases.h"
#include "analysis/run/read_other_runs.h"
#include "analysis/run/read_windows.h"
#include "analysis/run/run_database.h"
#include "analysis/run/view_columns.h"
#include "base/error.h"

namespace headrace::analysis {
namespace {

int64_t FindRun(RunDatabase& database, const std::string& path, const std::string& wanted) {
  Count by_id, by_name, latest;
  char* end = nullptr;
  const long long number = std::strtoll(wanted.c_str(), &end, 10);
  const bool numeric = !wanted.empty() && *end == '\0';
  std::vector<std::string> names;
  database.Each("SELECT run_id, name FROM run_summary ORDER BY run_id", 0, [&](const ViewRow& row) {
    const int64_t id = row.Number("run_id");
    latest = id;
    if (numeric && id == number) by_id = id;
    if (row.Text("name") == wanted) by_name = id;
    names.push_back(row.Text("name"));
  });
  if (!latest)
    throw Error(ExitCode::kBadData, "holds no run", path, "record one: headrace run PIPELINE");
  if (by_id) return *by_id;
  if (by_name) return *by_name;
  if (wanted == "latest" || wanted.empty()) return *latest;
  const std::string fix = "'headrace runs' lists them";
  throw Error(ExitCode::kBadData, fmt::format("has no run '{}'", Printable(wanted)), path, fix);
}

RunRow ReadRun(const ViewRow& row) {
  RunRow run;
  run.run_id = row.Number("run_id");
  run.state = row.Text("state");
  run.headrace_version = row.Text("headrace_version");
  run.duration_ns = row.Number("duration_ns");
#define HR_RUN_COLUMN(type, column, help) ReadColumn(row, #column, &run.column);
#define HR_CONDITION_COLUMN(type, read, column, unset, help) ReadColumn(row, #column, &run.column);
#include "collectors/store/columns.def"
  return run;
}

// Of the CPU time of the run's processes: what there was by the end of an interval. Between two
// intervals nothing was used.
void AddCpuPoint(int64_t start_ns, int64_t end_ns, double total_ns, RunView* view) {
  std::vector<HostPointRow>* points = &view->process_cpu;
  if (!points->empty() && start_ns > points->back().at_ns) {
    points->push_back({start_ns, points->back().value});
  }
  points->push_back({end_ns, total_ns});
}

// The statement that reads the course of the measurements of those numbers. The rows of a time are
// found by the key in our tables, so what was measured besides is passed over; tables of another
// program may not have that key.
std::string CourseOf(const std::string& numbers, bool ours) {
  const std::string wanted = fmt::format("run_id = ?1 AND measurement_id IN ({})", numbers);
  const std::string columns = "start_ns, duration_ns, measurement_id, value";
  if (!ours) {
    return fmt::format("SELECT {} FROM measurement_delta WHERE {} ORDER BY start_ns", columns,
                       wanted);
  }
  return fmt::format(
      "WITH RECURSIVE times(at_ns) AS (SELECT MIN(start_ns) FROM measurement_delta WHERE "
      "run_id = ?1 UNION ALL SELECT (SELECT MIN(start_ns) FROM measurement_delta WHERE "
      "run_id = ?1 AND start_ns > at_ns) FROM times WHERE at_ns NOT NULL) "
      "SELECT {} FROM times CROSS JOIN measurement_delta WHERE {} AND start_ns = at_ns "
      "ORDER BY start_ns, measurement_id",
      columns, wanted);
}

// The course of the CPU time of the run's processes, of the machine's busy cores, and of what
// devices delivered to the processes. They are found by their numbers, in one pass: a long run has
// many rows of other measurements.
void ReadMeasuredCourse(RunDatabase& database, int64_t id, RunView* view) {
  std::map<int64_t, std::string> names;
  std::string numbers;
  database.Each(
      "SELECT measurement_id, metric, process_id, thread, subject, cause FROM measurement_summary "
      "WHERE run_id = ?1 AND metric IN ('process_cpu_ns', 'host_busy_cores', 'process_read_bytes')",
      id, [&](const ViewRow& row) {
        const std::string metric = row.Text("metric");
        const bool labelled = row.Has("process_id") != (metric == "process_read_bytes") ||
                              !row.Text("thread").empty() || !row.Text("subject").empty() ||
                              !row.Text("cause").empty();
        if (labelled) return;
        names.emplace(row.Number("measurement_id"), metric);
        numbers += (numbers.empty() ? "" : ", ") + std::to_string(row.Number("measurement_id"));
      });
  if (names.empty()) return;
  double cpu_ns = 0;
  database.Each(CourseOf(numbers, database.is_ours()), id, [&](const ViewRow& row) {
    const std::string& metric = names[row.NumberAt(2)];
    const double value = row.Real("value").value_or(0);
    const int64_t start_ns = row.NumberAt(0), duration_ns = row.NumberAt(1);
    if (metric == "host_busy_cores") {
      view->busy_cores.push_back({start_ns, duration_ns, value});
    } else if (metric == "process_cpu_ns") {
      AddCpuPoint(start_ns, start_ns + duration_ns, cpu_ns += value, view);
    } else if (!view->device_reads.empty() && view->device_reads.back().start_ns == start_ns) {
      DeviceReadRow& all = view->device_reads.back();
      all.duration_ns = std::max(all.duration_ns, duration_ns);
      all.read_bytes += value;
    } else {
      view->device_reads.push_back({start_ns, duration_ns, value});
    }
  });
}

// The same of CPU time and busy cores, of a run from before these were measurements, or of another
// program.
void ReadHostCourse(RunDatabase& database, int64_t id, RunView* view) {
  database.Each(
      "SELECT metric, start_ns, duration_ns, value FROM host_interval WHERE run_id = ?1 AND metric "
      "IN ('process_cpu_ns', 'host_busy_cores') ORDER BY start_ns",
      id, [&](const ViewRow& row) {
        const Real value = row.Real("value");
        if (!value) return;
        const int64_t start_ns = row.Number("start_ns"), duration_ns = row.Number("duration_ns");
        if (row.View("metric") == "host_busy_cores") {
          view->busy_cores.push_back({start_ns, duration_ns, *value});
        } else {
          AddCpuPoint(start_ns, start_ns + duration_ns, *value, view);
        }
      });
}

void ReadCpuAndDevices(RunDatabase& database, int64_t id, RunView* view) {
  const bool is_measured = !view->measurements.empty() && database.Has("measurement_delta");
  if (is_measured) ReadMeasuredCourse(database, id, view);
  if (!is_measured && database.Has("host_interval")) ReadHostCourse(database, id, view);
  if (!view->process_cpu.empty() && view->process_cpu.back().at_ns < view->run.duration_ns) {
    view->process_cpu.push_back({view->run.duration_ns, view->process_cpu.back().value});
  }
}

void ReadPipeline(RunDatabase& database, int64_t id, RunView* view) {
  database.EachOf("stage_summary", id, "stage_index", [&](const ViewRow& row) {
    StageRow stage;
    static_cast<StageCounters&>(stage) = ReadStageCounters(row);
    stage.name = row.Text("stage");
    stage.stage_index = row.Number("stage_index");
    stage.last_parallelism_count = row.Number("last_parallelism_count");
    stage.max_parallelism_count = row.Number("max_parallelism_count");
    view->stages.push_back(std::move(stage));
  });
  database.EachOf("operator_summary", id, "stage_index, position_index", [&](const ViewRow& row) {
    OperatorRow op;
    static_cast<OperatorCounters&>(op) = ReadOperatorCounters(row);
    op.name = row.Text("operator");
    op.kind = row.Text("kind");
    op.stage = row.Text("stage");
    op.source = row.Text("source");
    op.stage_index = row.Number("stage_index");
    op.position_index = row.Number("position_index");
    op.residual_ns = row.Integer("residual_ns");
    view->operators.push_back(std::move(op));
  });
  database.EachOf("queue_summary", id, "", [&](const ViewRow& row) {
    QueueRow queue;
    static_cast<QueueCounters&>(queue) = ReadQueueCounters(row);
    queue.name = row.Text("queue");
    queue.producer_stage = row.Text("producer_stage");
    queue.consumer_stage = row.Text("consumer_stage");
    queue.capacity_count = row.Number("capacity_count");
    view->queues.push_back(std::move(queue));
  });
  database.EachOf("resource_summary", id, "", [&](const ViewRow& row) {
    ResourceRow resource;
    static_cast<ResourceCounters&>(resource) = ReadResourceCounters(row);
    resource.name = row.Text("resource");
    resource.kind = row.Text("kind");
    resource.servers_count = row.Integer("servers_count").value_or(1);
    view->resources.push_back(std::move(resource));
  });
}

void ReadSummaries(RunDatabase& database, int64_t id, RunView* view) {
  if (database.Has("run_setting")) {
    database.EachOf("run_setting", id, "key", [&](const ViewRow& row) {
      view->run.settings.emplace(row.Text("key"), row.Text("value"));
    });
  }
  if (database.Has("run_fact")) {
    database.EachOf("run_fact", id, "name", [&](const ViewRow& row) {
      if (const Real value = row.Real("value")) view->run.facts.emplace(row.Text("name"), *value);
    });
  }
  ReadPipeline(database, id, view);
  database.EachOf("step_summary", id, "", [&](const ViewRow& row) {
    static_cast<StepCounters&>(view->steps) = ReadStepCounters(row);
    view->steps.wall_ns = row.Number("wall_ns");
    view->steps.step_p50_ns = row.Integer("step_p50_ns");
    view->steps.step_p99_ns = row.Integer("step_p99_ns");
  });
  if (database.Has("step_time_histogram")) {
    database.EachOf("step_time_histogram", id, "step_ns", [&](const ViewRow& row) {
      view->step_times.push_back({row.Number("step_ns"), row.Number("steps_count")});
    });
  }
  database.EachOf("host_summary", id, "metric", [&](const ViewRow& row) {
    view->hosts.push_back({row.Text("metric"), row.Text("unit"), row.Text("source"),
                           row.Real("mean_value"), row.Real("minimum_value"),
                           row.Real("maximum_value"), row.Real("last_value"), row.Text("subject"),
                           row.Text("cause")});
  });
  database.EachOf("probe_status", id, "probe", [&](const ViewRow& row) {
    view->probes.push_back({row.Text("probe"), row.Text("state"), row.Text("reason"),
                            row.Text("fix"), row.Text("affects")});
  });
  database.EachOf("loss_summary", id, "what", [&](const ViewRow& row) {
    view->losses.push_back(
        {row.Text("what"), row.Number("lost_count"), row.Integer("total_count")});
  });
}

void ReadProcesses(RunDatabase& database, int64_t id, RunView* view) {
  database.EachOf("process_summary", id, "process_id", [&](const ViewRow& row) {
    ProcessRow process;
#define HR_PROCESS_COLUMN(type, member, column, help) ReadColumn(row, #column, &process.column);
#include "collectors/store/columns.def"
    // One that ended before the collector saw that it had begun.
    if (process.ended_ns) process.ended_ns = std::max(*process.ended_ns, process.started_ns);
    process.cpu_ns = row.Integer("cpu_ns");
    process.read_bytes = row.Integer("read_bytes");
    process.threads_count = row.Integer("threads_count");
    process.mean_rss_bytes = row.Real("mean_rss_bytes");
    process.maximum_rss_bytes = row.Real("maximum_rss_bytes");
    view->processes.push_back(std::move(process));
  });
}

void ReadMeasurements(RunDatabase& database, int64_t id, RunView* view) {
  database.EachOf("measurement_summary", id, "metric", [&](const ViewRow& row) {
    MeasurementRow m;
    m.metric = row.Text("metric");
    m.unit = row.Text("unit");
    m.kind = row.Text("kind");
    m.source = row.Text("source");
    m.operator_name = row.Text("operator");
    m.stage = row.Text("stage");
    m.process_id = row.Integer("process_id");
    m.process = row.Text("process");
    m.pid = row.Number("pid");
    m.thread = row.Text("thread");
    m.subject = row.Text("subject");
    m.cause = row.Text("cause");
    m.bucket = row.Integer("bucket");
    m.value = row.Real("value");
    m.minimum_value = row.Real("minimum_value");
    m.maximum_value = row.Real("maximum_value");
    m.last_value = row.Real("last_value");
    m.running_ratio = row.Real("running_ratio");
    view->measurements.push_back(std::move(m));
  });
  database.EachOf("stack_summary", id, fmt::format("time_ns DESC LIMIT {}", kMaxStacks),
                  [&](const ViewRow& row) {
                    StackRow stack;
                    stack.kind = row.Text("kind");
                    stack.operator_name = row.Text("operator");
                    stack.stage = row.Text("stage");
                    stack.process_id = row.Integer("process_id");
                    stack.process = row.Text("process");
                    stack.pid = row.Number("pid");
                    stack.thread = row.Text("thread");
                    stack.folded = row.Text("folded");
                    stack.samples_count = row.Number("samples_count");
                    stack.time_ns = row.Number("time_ns");
                    view->stacks.push_back(std::move(stack));
                  });
  view->step_interpreter_ratio = InterpreterShareOfStep(*view);
  view->pools_interpreter_ratio = InterpreterShareOfPools(*view);
  database.EachOf("metric_list", id, "metric",
                  [&](const ViewRow& row) { view->metrics.push_back(row.Text("metric")); });
  database.EachOf("detail_range", id, "start_ns", [&](const ViewRow& row) {
    view->details.push_back({row.Number("start_ns"), row.Number("end_ns"), row.Text("reason")});
  });
}

// Stored intervals longer than a slice, or across a border of two, by what of them is in each.
void AddToCourse(const ViewRow& row, RunView* view) {
  CourseRow one{row.Number("first"),          row.Text("metric"),  row.Number("process_id"),
                row.Text("thread"),           row.Text("subject"), row.Text("cause"),
                row.Real("value").value_or(0)};
  const int64_t last = row.Number("last"), slice_ns = view->course_slice_ns;
  if (one.slice >= last) {
    view->course.push_back(std::move(one));
    return;
  }
  const int64_t start_ns = row.Number("start_ns"), duration_ns = row.Number("duration_ns");
  const double value = one.value;
  for (; one.slice <= last; ++one.slice) {
    const int64_t from_ns = std::max(start_ns, one.slice * slice_ns);
    const int64_t to_ns = std::min(start_ns + duration_ns, (one.slice + 1) * slice_ns);
    one.value = value * static_cast<double>(to_ns - from_ns) / static_cast<double>(duration_ns);
    view->course.push_back(one);
  }
}

// What threads did in an operator and outside all of them is one here; it is stored apart so that
// no sum has it twice. A long recording has some
// hundreds of slices. None is shorter than the stored intervals, most of the time: what is drawn
// again and again must not be parts of one.
void ReadCourse(RunDatabase& database, int64_t id, RunView* view) {
  constexpr const char* kMetrics =
      "('on_cpu_ns', 'runnable_ns', 'off_cpu_ns', 'runnable_inside_ns', 'off_cpu_inside_ns', "
      "'poll_timed_out_ns', 'wakeups_count', 'wakeup_wait_ns', "
      "'sampled_off_cpu_ns', 'thread_on_cpu_ns', 'thread_runnable_ns', "
      "'sampled_on_cpu_ns', 'sampled_runnable_ns')";
  constexpr int64_t kShortestNs = 500'000'000, kMostSlices = 300, kJitterNs = 100'000'000;
  int64_t slice_ns = std::max(kShortestNs, view->run.duration_ns / kMostSlices);
  // Of the probes that told most of it, the finest.
  int64_t usual_ns = 0;
  database.Each(
      "SELECT SUM(1.0 * duration_ns * duration_ns) / SUM(duration_ns) AS usual_ns, "
      "SUM(duration_ns) AS seen_ns FROM (SELECT DISTINCT metric, start_ns, duration_ns FROM "
      "measurement_interval WHERE run_id = ?1 AND duration_ns > 0 AND metric IN ('on_cpu_ns', "
      "'thread_on_cpu_ns', 'sampled_on_cpu_ns')) AS stored GROUP BY metric",
      id, [&](const ViewRow& row) {
        const auto of_probe_ns = static_cast<int64_t>(row.Real("usual_ns").value_or(0));
        if (2 * row.Number("seen_ns") < view->run.duration_ns) return;
        usual_ns = usual_ns == 0 ? of_probe_ns : std::min(usual_ns, of_probe_ns);
      });
  // Most are as long as that or shorter.
  usual_ns = (usual_ns + kShortestNs - 1 - kJitterNs) / kShortestNs * kShortestNs;
  slice_ns = std::max(slice_ns, usual_ns);
  view->course_slice_ns = slice_ns;
  database.Each(
      fmt::format("SELECT first, last, metric, process_id, thread, subject, cause, "
                  "MIN(start_ns) AS start_ns, MIN(duration_ns) AS duration_ns, "
                  "SUM(value) AS value FROM (SELECT start_ns / {0} AS first, CASE WHEN duration_ns "
                  "> 0 THEN (start_ns + duration_ns - 1) / {0} ELSE start_ns / {0} END AS last, "
                  "REPLACE(metric, '_inside_', '_') AS metric, process_id, thread, subject, cause, "
                  "start_ns, duration_ns, value FROM measurement_interval WHERE run_id = ?1 AND "
                  "process_id IS NOT NULL AND thread <> '' AND metric IN {1}) AS stored GROUP BY "
                  "first, last, metric, process_id, thread, subject, "
                  "cause, CASE WHEN first = last THEN 0 ELSE start_ns END, CASE WHEN first = last "
                  "THEN 0 ELSE duration_ns END ORDER BY first",
                  slice_ns, kMetrics),
      id, [&](const ViewRow& row) { AddToCourse(row, view); });
  database.Each(
      "SELECT DISTINCT metric, start_ns, start_ns + duration_ns AS end_ns FROM "
      "measurement_interval WHERE run_id = ?1 AND process_id IS NOT NULL "
      "AND metric IN ('on_cpu_ns', 'thread_on_cpu_ns', 'sampled_on_cpu_ns') ORDER BY 1, 2, 3",
      id, [view, last = std::string(), seen_to = int64_t{0}](const ViewRow& row) mutable {
        const std::string metric = row.Text("metric");
        if (metric != last) seen_to = 0;
        last = metric;
        const int64_t from = std::max(seen_to, row.Number("start_ns"));
        seen_to = std::max(seen_to, row.Number("end_ns"));
        view->course_seen_ns[metric] += seen_to - from;
      });
}

void ReadReceivers(RunDatabase& database, int64_t id, RunView* view) {
  database.Each(
      "SELECT process_id, SUM(duration_ns) AS duration_ns FROM (SELECT DISTINCT process_id, "
      "start_ns, duration_ns FROM measurement_interval WHERE run_id = ?1 AND "
      "process_id IS NOT NULL AND metric = 'socket_received_bytes' AND value > 0) AS received "
      "GROUP BY process_id",
      id, [view](const ViewRow& row) {
        view->receiving_ns[row.Number("process_id")] = row.Number("duration_ns");
      });
}

// In slices of at least a second, as devices are asked, and some thousands of them at most.
void ReadAcceleratorUse(RunDatabase& database, int64_t id, RunView* view) {
  constexpr int64_t kShortestNs = 1'000'000'000, kMostSlices = 2000;
  const int64_t slice_ns = std::max(kShortestNs, view->run.duration_ns / kMostSlices);
  database.Each(
      fmt::format("SELECT MIN(start_ns) AS start_ns, SUM(duration_ns) AS duration_ns, subject, "
                  "SUM(value * duration_ns) / SUM(duration_ns) AS value FROM measurement_interval "
                  "WHERE run_id = ?1 AND metric = 'gpu_use_ratio' AND cause = 'compute' AND "
                  "duration_ns > 0 GROUP BY subject, start_ns / {} ORDER BY 1",
                  slice_ns),
      id, [&](const ViewRow& row) {
        if (const Real value = row.Real("value")) {
          view->accelerator_use.push_back(
              {row.Number("start_ns"), row.Number("duration_ns"), row.Text("subject"), *value});
        }
      });
}

void ReadStoreProbes(RunDatabase& database, int64_t id, RunView* view) {
  database.EachOf("store_probe", id, "start_ns", [&](const ViewRow& row) {
    StoreProbeRow probe;
#define HR_STORE_PROBE_COLUMN(type, member, column, help) ReadColumn(row, #column, &probe.column);
#include "collectors/store/columns.def"
    view->store_probes.push_back(std::move(probe));
  });
}

// Reads the ceilings of the latest calibration with the run's host and CPU.
void ReadCeilings(RunDatabase& database, int64_t id, RunView* view) {
  database.Each(
      "SELECT MAX(c.value) AS value FROM run_summary AS r JOIN calibration_summary AS c "
      "USING (hostname, cpu_model) WHERE r.run_id = ?1 AND c.metric = 'memory_read_bytes_per_s' "
      "GROUP BY c.calibration_id ORDER BY c.calibration_id DESC LIMIT 1",
      id, [&](const ViewRow& row) { view->memory_ceiling_bytes_per_s = row.Real("value"); });
}

// What the run did in its steady phase, as far as the course of its steps tells it; the store's own
// figure where that is too short.
Real ObservedBy(RunDatabase& database, int64_t id, Real stored) {
  RunView steps;
  database.Each(
      "SELECT start_ns, duration_ns, steps_count FROM step_interval WHERE run_id = ?1 "
      "ORDER BY start_ns",
      id, [&](const ViewRow& row) {
        WindowRow& window = steps.windows.emplace_back();
        window.start_ns = row.Number("start_ns");
        window.duration_ns = row.Number("duration_ns");
        window.steps.steps_count = row.Number("steps_count");
      });
  const Real steady = SteadyRate(std::move(steps));
  return steady ? steady : stored;
}

void ReadPredictions(RunDatabase& database, int64_t id, RunView* view) {
  const auto read = [&](const ViewRow& row) {
    return PredictionRow{
        row.Real("batches_per_second").value_or(0),
        row.Real("low"),
        row.Real("high"),
        ObservedBy(database, row.Number("run_id"), row.Real("observed_batches_per_second")),
        row.Text("limited_by"),
        row.Text("limited_by_kind"),
        row.Number("other_pipeline") != 0};
  };
  database.Each("SELECT *, 0 AS other_pipeline FROM prediction_summary WHERE run_id = ?1", id,
                [&](const ViewRow& row) { view->prediction = read(row); });
  database.Each(
      "SELECT p.*, f.run_id IS NOT NULL AND (f.pipeline_text <> o.pipeline_text OR "
      "COALESCE(f.table_text, '') <> COALESCE(o.table_text, '')) AS other_pipeline "
      "FROM run_summary AS r JOIN run_summary AS o USING (hostname, cpu_model) "
      "JOIN prediction_summary AS p ON p.run_id = o.run_id "
      "LEFT JOIN run_summary AS f ON f.run_id = p.from_run_id WHERE r.run_id = ?1 AND o.run_id < "
      "?1 "
      "AND o.state = 'complete' AND p.run_id IN (SELECT MAX(run_id) FROM prediction_summary "
      "WHERE run_id < ?1 GROUP BY from_run_id, batches_per_second) "
      "ORDER BY o.run_id DESC LIMIT 500",
      id, [&](const ViewRow& row) { view->earlier_predictions.push_back(read(row)); });
}

void ReadStoragePoints(RunDatabase& database, int64_t id, RunView* view) {
  database.Each(
      "SELECT c.folder, c.size_bytes, c.depth_count, c.value FROM run_summary AS r "
      "JOIN calibration_summary AS c USING (hostname, cpu_model) WHERE r.run_id = ?1 "
      "AND c.metric = 'storage_read_bytes_per_s' AND c.folder <> '' AND c.calibration_id = "
      "(SELECT MAX(n.calibration_id) FROM calibration_summary AS n WHERE n.folder = c.folder "
      "AND n.hostname = c.hostname AND n.metric = c.metric)",
      id, [&](const ViewRow& row) {
        const Real size = row.Real("size_bytes"), depth = row.Real("depth_count");
        const Real rate = row.Real("value");
        if (!size || !rate) return;
        view->storage_points.push_back({row.Text("folder"), *size, depth.value_or(1), *rate});
      });
}

}  // namespace

RunView LoadRun(const std::string& path, const std::string& run, const RunTimes& detail) {
  RunDatabase database(path);
  const int64_t id = FindRun(database, path, run);
  RunView view;
  database.EachOf("run_summary", id, "", [&](const ViewRow& row) { view.run = ReadRun(row); });
  ReadSummaries(database, id, &view);
  ReadWindows(database, id, detail, &view);
  if (database.Has("measurement_summary")) {
    ReadProcesses(database, id, &view);
    ReadMeasurements(database, id, &view);
    LowerToGroups(&view);
    ReadDeviceBytes(database, id, &view.device_bytes, &view.fetched_bytes);
    if (view.Has("gpu_use_ratio")) ReadAcceleratorUse(database, id, &view);
    // A program of its own may do most of its work in no operator. Of a long one that is not looked
    // for: its course takes seconds to read.
    constexpr int64_t kLongNs = 1'800'000'000'000;
    if (view.operators.empty() ||
        (view.run.pipeline_path.empty() && view.run.duration_ns < kLongNs)) {
      ReadCourse(database, id, &view);
      ReadReceivers(database, id, &view);
    }
  }
  ReadCpuAndDevices(database, id, &view);
  if (database.Has("calibration_summary")) {
    ReadCeilings(database, id, &view);
    ReadStoragePoints(database, id, &view);
  }
  if (database.Has("prediction_summary")) ReadPredictions(database, id, &view);
  if (database.Has("store_probe")) ReadStoreProbes(database, id, &view);
  ReadOtherRuns(database, id, &view);
  return view;
}

std::vector<DecisionRow> LoadDecisions(const std::string& path, const std::string& run) {
  RunDatabase database(path);
  const int64_t id = FindRun(database, path, run);
  std::vector<DecisionRow> decisions;
  if (!database.Has("decision_summary")) return decisions;
  database.EachOf("decision_summary", id, "decision_index", [&](const ViewRow& row) {
    DecisionRow& decision = decisions.emplace_back();
#define HR_DECISION_COLUMN(type, member, column, help) ReadColumn(row, #column, &decision.member);
#include "collectors/store/columns.def"
  });
  database.EachOf("decision_change", id, "knob", [&](const ViewRow& row) {
    for (DecisionRow& decision : decisions) {
      if (decision.index != row.Number("decision_index")) continue;
      decision.changes.push_back({row.Text("knob"), row.Text("from_text"), row.Text("to_text")});
    }
  });
  return decisions;
}

int64_t RecordedNs(const std::string& path, int64_t run_id) {
  RunDatabase database(path);
  int64_t ns = 0;
  database.EachOf("run_summary", run_id, "",
                  [&](const ViewRow& row) { ns = row.Number("duration_ns"); });
  return ns;
}

}  // namespace headrace::analysis
