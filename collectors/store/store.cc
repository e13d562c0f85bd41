#include "collectors/store/store.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sqlite3.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstdlib>

#include "base/check.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/temporary.h"
#include "collectors/store/as_current.h"
#include "collectors/store/copy_run.h"
#include "collectors/store/find_run.h"
#include "collectors/store/store_file.h"
#include "probes/process.h"

namespace headrace::collectors {
namespace {

constexpr int64_t kSecond = 1'000'000'000;
constexpr double kBucketGrowth = 1.02;
constexpr int64_t kKeptDetail = -1;  // as the resolution of an interval: no rollup takes it

void Add(std::optional<int64_t>* sum, const std::optional<int64_t>& value) {
  if (value) *sum = sum->value_or(0) + *value;
}

void AddTo(OperatorSample* sum, const OperatorSample& o) {
  sum->completions += o.completions;
  sum->rows += o.rows;
  sum->in_bytes += o.in_bytes;
  sum->out_bytes += o.out_bytes;
  sum->busy_ns += o.busy_ns;
  sum->lock_wait_ns += o.lock_wait_ns;
  sum->wait_in_ns += o.wait_in_ns;
  sum->wait_out_ns += o.wait_out_ns;
  Add(&sum->on_cpu_ns, o.on_cpu_ns);
  Add(&sum->runnable_ns, o.runnable_ns);
  Add(&sum->on_cpu_low_ns, o.on_cpu_low_ns);
  Add(&sum->on_cpu_high_ns, o.on_cpu_high_ns);
  Add(&sum->runnable_low_ns, o.runnable_low_ns);
  Add(&sum->runnable_high_ns, o.runnable_high_ns);
  Add(&sum->residual_ns, o.residual_ns);
  if (!o.time_source.empty()) sum->time_source = o.time_source;
}

// Device and inode; zeros where there is no such file.
std::pair<uint64_t, uint64_t> FileId(const std::string& path) {
  struct stat info;
  if (stat(path.c_str(), &info) != 0) return {0, 0};
  return {info.st_dev, info.st_ino};
}

int64_t BucketMiddle(int64_t ns) {
  if (ns <= 1) return 1;
  const double bucket = std::floor(std::log(static_cast<double>(ns)) / std::log(kBucketGrowth));
  return std::llround(std::pow(kBucketGrowth, bucket + 0.5));
}

}  // namespace

const char* RunStateName(RunState state) {
  switch (state) {
    case RunState::kRecording:
      return "recording";
    case RunState::kComplete:
      return "complete";
    case RunState::kInterrupted:
      return "interrupted";
    case RunState::kTruncated:
      return "truncated";
  }
  return "interrupted";
}

RunStore::RunStore(const std::string& path) : database_(path, Database::Mode::kCreate) {
  Prepare();
  for (const int64_t run_id : FindAbandonedRuns(database_))
    FinishRun(run_id, RunState::kInterrupted);
  for (const int64_t comparison_id : FindAbandonedComparisons(database_)) {
    Prepared(
        "UPDATE comparisons SET state = 'interrupted' WHERE comparison_id = ?1 AND state = "
        "'running'")
        .Bind(comparison_id)
        .Run();
  }
}

void RunStore::Prepare() {
  if (CheckVersion(database_) > 0) CheckTables(database_);
  // WAL: readers and the writer do not wait for each other, and a killed process loses nothing that
  // was committed. NORMAL: a power failure may lose the newest transactions, never the file.
  // Of a new file only: room of removed runs can be given back to the disk.
  if (database_.Integer("PRAGMA page_count") == 0) {
    database_.Execute("PRAGMA auto_vacuum = INCREMENTAL");
  }
  SwitchToWal(database_);
  database_.Execute("PRAGMA synchronous = NORMAL");
  database_.Execute("PRAGMA foreign_keys = ON");
  database_.Execute("PRAGMA wal_autocheckpoint = 500");
  Migrate(database_);
  mode_ = ModeOf(database_.path());
  log_id_ = FileId(database_.path() + "-wal");
}

Statement& RunStore::Prepared(const char* sql) {
  auto it = prepared_.find(sql);
  if (it == prepared_.end()) it = prepared_.emplace(sql, Statement(database_, sql)).first;
  it->second.Reset();
  return it->second;
}

int64_t RunStore::BeginRun(const RunInfo& info) {
  const auto self = probes::ReadProcessStat(getpid());
  Statement insert(database_,
                   "INSERT INTO runs (name, tags, state, program, pid, command, pipeline_path, "
                   "pipeline_text, started_realtime_ns, accounting_level, accounting_note, "
                   "cores_count, cores_bound_by, memory_bytes, memory_bound_by, hostname, kernel, "
                   "cpu_model, headrace_version, collector_pid, collector_start, level_asked, "
                   "deep, ring_ns, trigger_text) VALUES "
                   "(?1, ?2, 'recording', ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, "
                   "?15, ?16, ?17, ?18, ?19, ?20, ?21, ?22, ?23, ?24)");
  insert.Bind(std::string_view(info.name)).Bind(std::string_view(info.tags));
  insert.Bind(std::string_view(info.program)).Bind(info.pid).Bind(std::string_view(info.command));
  insert.Bind(std::string_view(info.pipeline_path)).Bind(std::string_view(info.pipeline_text));
  insert.Bind(info.started_realtime_ns).Bind(info.accounting_level);
  insert.Bind(std::string_view(info.accounting_note)).Bind(info.cores_count);
  insert.Bind(std::string_view(info.cores_bound_by)).Bind(info.memory_bytes);
  insert.Bind(std::string_view(info.memory_bound_by)).Bind(std::string_view(info.hostname));
  insert.Bind(std::string_view(info.kernel)).Bind(std::string_view(info.cpu_model));
  insert.Bind(std::string_view(HEADRACE_VERSION)).Bind(int64_t{getpid()});
  insert.Bind(self ? self->start_ticks : int64_t{0});
  insert.Bind(info.level_asked).Bind(int64_t{info.deep}).Bind(info.ring_ns);
  insert.Bind(std::string_view(info.trigger_text));
  insert.Run();
  return database_.last_id();
}

void RunStore::SetAccounting(int64_t run_id, const std::string& program, int64_t level,
                             const std::string& note) {
  Prepared(
      "UPDATE runs SET program = ?2, accounting_level = ?3, accounting_note = ?4 "
      "WHERE run_id = ?1")
      .Bind(run_id)
      .Bind(std::string_view(program))
      .Bind(level)
      .Bind(std::string_view(note))
      .Run();
}

void RunStore::SetProbe(int64_t run_id, const std::string& probe, const std::string& state,
                        const std::string& reason, const std::string& fix,
                        const std::string& affects) {
  Prepared(
      "INSERT OR REPLACE INTO probes (run_id, probe, state, reason, fix, affects) "
      "VALUES (?1, ?2, ?3, ?4, ?5, ?6)")
      .Bind(run_id)
      .Bind(std::string_view(probe))
      .Bind(std::string_view(state))
      .Bind(std::string_view(reason))
      .Bind(std::string_view(fix))
      .Bind(std::string_view(affects))
      .Run();
}

void RunStore::SetLoss(int64_t run_id, const std::string& what, int64_t lost_count,
                       std::optional<int64_t> total_count) {
  Prepared(
      "INSERT OR REPLACE INTO losses (run_id, what, lost_count, total_count) "
      "VALUES (?1, ?2, ?3, ?4)")
      .Bind(run_id)
      .Bind(std::string_view(what))
      .Bind(lost_count)
      .Bind(total_count)
      .Run();
}

void RunStore::Append(int64_t run_id, const std::vector<IntervalSample>& intervals,
                      const MeasurementBatch& measurements, AppendPart part) {
  Transaction transaction(database_);
  for (const IntervalSample& interval : intervals) AppendOne(run_id, interval, part);
  // Operators are the most numerous: their totals are added up first and written once.
  std::map<int64_t, OperatorSample> totals;
  for (const IntervalSample& interval : intervals) {
    if (part == AppendPart::kCourse || part == AppendPart::kDetail) break;
    for (const OperatorSample& o : interval.operators) {
      const auto [it, inserted] = totals.emplace(o.id, o);
      if (!inserted) AddTo(&it->second, o);
    }
  }
  for (const auto& [id, o] : totals) {
    Prepared(
        "INSERT INTO operators VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, "
        "?13, ?14, ?15, ?16, NULLIF(?17, ''), ?18, ?19, ?20, ?21, ?22) ON CONFLICT DO UPDATE SET "
        "completions_count = completions_count + ?7, rows_count = rows_count + ?8, "
        "bytes_in_bytes = bytes_in_bytes + ?9, bytes_out_bytes = bytes_out_bytes + ?10, "
        "busy_ns = busy_ns + ?11, on_cpu_ns = COALESCE(on_cpu_ns + ?12, on_cpu_ns, ?12), "
        "runnable_ns = COALESCE(runnable_ns + ?13, runnable_ns, ?13), "
        "lock_wait_ns = lock_wait_ns + ?14, wait_in_ns = wait_in_ns + ?15, "
        "wait_out_ns = wait_out_ns + ?16, time_source = COALESCE(NULLIF(?17, ''), time_source), "
        "residual_ns = COALESCE(residual_ns + ?18, residual_ns, ?18), "
        "on_cpu_low_ns = COALESCE(on_cpu_low_ns + ?19, on_cpu_low_ns, ?19), "
        "on_cpu_high_ns = COALESCE(on_cpu_high_ns + ?20, on_cpu_high_ns, ?20), "
        "runnable_low_ns = COALESCE(runnable_low_ns + ?21, runnable_low_ns, ?21), "
        "runnable_high_ns = COALESCE(runnable_high_ns + ?22, runnable_high_ns, ?22)")
        .Bind(run_id)
        .Bind(o.id)
        .Bind(std::string_view(o.name))
        .Bind(std::string_view(o.kind))
        .Bind(o.stage_id)
        .Bind(o.position)
        .Bind(o.completions)
        .Bind(o.rows)
        .Bind(o.in_bytes)
        .Bind(o.out_bytes)
        .Bind(o.busy_ns)
        .Bind(o.on_cpu_ns)
        .Bind(o.runnable_ns)
        .Bind(o.lock_wait_ns)
        .Bind(o.wait_in_ns)
        .Bind(o.wait_out_ns)
        .Bind(std::string_view(o.time_source))
        .Bind(o.residual_ns)
        .Bind(o.on_cpu_low_ns)
        .Bind(o.on_cpu_high_ns)
        .Bind(o.runnable_low_ns)
        .Bind(o.runnable_high_ns)
        .Run();
  }
  AppendMeasurements(run_id, measurements);
  transaction.Commit();
}

void RunStore::AppendMeasurements(int64_t run_id, const MeasurementBatch& batch) {
  for (const MetricRow& m : batch.metrics) {
    Prepared("INSERT OR IGNORE INTO metrics VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)")
        .Bind(run_id)
        .Bind(std::string_view(m.metric))
        .Bind(std::string_view(m.unit))
        .Bind(std::string_view(m.kind))
        .Bind(std::string_view(m.source))
        .Bind(std::string_view(m.privilege))
        .Bind(std::string_view(m.help))
        .Run();
  }
  for (const ProcessRow& p : batch.processes) {
    Prepared(
        "INSERT OR REPLACE INTO processes VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11)")
        .Bind(run_id)
        .Bind(p.id)
        .Bind(p.pid)
        .Bind(p.parent_pid)
        .Bind(std::string_view(p.name))
        .Bind(std::string_view(p.command))
        .Bind(std::string_view(p.role))
        .Bind(int64_t{p.has_accounts})
        .Bind(p.started_ns)
        .Bind(p.ended_ns)
        .Bind(std::string_view(p.exit_text))
        .Run();
  }
  for (const MeasurementRow& m : batch.definitions) {
    Prepared(
        "INSERT INTO measurements (run_id, measurement_id, metric, source, operator_id, "
        "process_id, thread, subject, cause, bucket) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, "
        "?10)")
        .Bind(run_id)
        .Bind(m.id)
        .Bind(std::string_view(m.metric))
        .Bind(std::string_view(m.source))
        .Bind(m.operator_id)
        .Bind(m.process_id)
        .Bind(std::string_view(m.thread))
        .Bind(std::string_view(m.subject))
        .Bind(std::string_view(m.cause))
        .Bind(m.bucket)
        .Run();
  }
  for (const MeasurementTotal& t : batch.totals) {
    Prepared(
        "UPDATE measurements SET weight_ns = ?3, weighted_sum = ?4, minimum_value = ?5, "
        "maximum_value = ?6, last_value = ?7, running_ratio = ?8 "
        "WHERE run_id = ?1 AND measurement_id = ?2")
        .Bind(run_id)
        .Bind(t.id)
        .Bind(t.weight_ns)
        .Bind(t.weighted_sum)
        .Bind(t.minimum)
        .Bind(t.maximum)
        .Bind(t.last)
        .Bind(t.running_ratio)
        .Run();
  }
  for (const MeasurementInterval& i : batch.intervals) {
    Prepared("INSERT OR REPLACE INTO measurement_intervals VALUES (?1, ?2, ?3, ?4, ?5)")
        .Bind(run_id)
        .Bind(i.start_ns)
        .Bind(i.id)
        .Bind(i.duration_ns)
        .Bind(i.value)
        .Run();
  }
  for (const StackRow& s : batch.stacks) {
    Prepared(
        "INSERT INTO stacks VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9) "
        "ON CONFLICT DO UPDATE SET samples_count = ?8, time_ns = ?9")
        .Bind(run_id)
        .Bind(s.id)
        .Bind(std::string_view(s.kind))
        .Bind(s.operator_id)
        .Bind(s.process_id)
        .Bind(std::string_view(s.thread))
        .Bind(std::string_view(s.folded))
        .Bind(s.samples)
        .Bind(s.time_ns)
        .Run();
  }
}

void RunStore::ReleaseDetailRange(int64_t run_id, const DetailRange& range) {
  Transaction transaction(database_);
  Prepared(
      "UPDATE intervals SET resolution_ns = 0 WHERE run_id = ?1 AND resolution_ns = ?4 AND "
      "start_ns >= ?2 AND start_ns < ?3")
      .Bind(run_id)
      .Bind(range.start_ns)
      .Bind(range.end_ns)
      .Bind(kKeptDetail)
      .Run();
  Prepared("DELETE FROM detail_ranges WHERE run_id = ?1 AND start_ns = ?2")
      .Bind(run_id)
      .Bind(range.start_ns)
      .Run();
  transaction.Commit();
}

void RunStore::SetDetailRange(int64_t run_id, const DetailRange& range) {
  Prepared("INSERT OR REPLACE INTO detail_ranges VALUES (?1, ?2, ?3, ?4)")
      .Bind(run_id)
      .Bind(range.start_ns)
      .Bind(range.end_ns)
      .Bind(std::string_view(range.reason))
      .Run();
}

// Totals and deltas are two statements per entity, both prepared once.
void RunStore::AppendOne(int64_t run_id, const IntervalSample& t, AppendPart part) {
  const bool totals = part == AppendPart::kAll || part == AppendPart::kTotals;
  const bool course = part != AppendPart::kTotals;
  Prepared("UPDATE runs SET duration_ns = MAX(duration_ns, ?2) WHERE run_id = ?1")
      .Bind(run_id)
      .Bind(t.start_ns + t.duration_ns)
      .Run();
  if (course)
    Prepared(
        "INSERT INTO intervals (run_id, start_ns, duration_ns, steps_count, step_rows_count, "
        "step_wait_ns, step_compute_ns, resolution_ns) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)")
        .Bind(run_id)
        .Bind(t.start_ns)
        .Bind(t.duration_ns)
        .Bind(t.steps.steps)
        .Bind(t.steps.rows)
        .Bind(t.steps.wait_ns)
        .Bind(t.steps.compute_ns)
        .Bind(part == AppendPart::kDetail ? kKeptDetail : int64_t{0})
        .Run();
  for (const StageSample& s : t.stages) {
    if (totals)
      Prepared(
          "INSERT INTO stages (run_id, stage_id, stage, stage_index, last_parallelism_count, "
          "max_parallelism_count, parallelism_ns, lifetime_ns, on_cpu_ns, runnable_ns, "
          "unattributed_ns, observed_ns) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, "
          "?12) ON CONFLICT DO UPDATE SET last_parallelism_count = ?5, max_parallelism_count = "
          "?6, parallelism_ns = parallelism_ns + ?7, lifetime_ns = lifetime_ns + ?8, "
          "on_cpu_ns = COALESCE(on_cpu_ns + ?9, on_cpu_ns, ?9), "
          "runnable_ns = COALESCE(runnable_ns + ?10, runnable_ns, ?10), "
          "unattributed_ns = unattributed_ns + ?11, observed_ns = observed_ns + ?12")
          .Bind(run_id)
          .Bind(s.id)
          .Bind(std::string_view(s.name))
          .Bind(s.index)
          .Bind(s.parallelism)
          .Bind(s.max_parallelism)
          .Bind(s.parallelism_ns)
          .Bind(s.lifetime_ns)
          .Bind(s.on_cpu_ns)
          .Bind(s.runnable_ns)
          .Bind(s.unattributed_ns)
          .Bind(s.observed_ns)
          .Run();
    if (course)
      Prepared("INSERT INTO stage_intervals VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)")
          .Bind(run_id)
          .Bind(t.start_ns)
          .Bind(s.id)
          .Bind(s.parallelism_ns)
          .Bind(s.observed_ns)
          .Bind(s.lifetime_ns)
          .Bind(s.on_cpu_ns)
          .Bind(s.runnable_ns)
          .Bind(s.unattributed_ns)
          .Run();
  }
  for (const OperatorSample& o : t.operators) {
    if (!course) break;
    if (o.busy_ns + o.wait_in_ns + o.wait_out_ns + o.completions + o.rows + o.in_bytes +
            o.out_bytes + o.on_cpu_ns.value_or(0) + o.runnable_ns.value_or(0) ==
        0) {
      continue;
    }
    Prepared(
        "INSERT INTO operator_intervals VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, "
        "?11, ?12, ?13, ?14, ?15, ?16, ?17)")
        .Bind(run_id)
        .Bind(t.start_ns)
        .Bind(o.id)
        .Bind(o.completions)
        .Bind(o.rows)
        .Bind(o.in_bytes)
        .Bind(o.out_bytes)
        .Bind(o.busy_ns)
        .Bind(o.on_cpu_ns)
        .Bind(o.runnable_ns)
        .Bind(o.lock_wait_ns)
        .Bind(o.wait_in_ns)
        .Bind(o.wait_out_ns)
        .Bind(o.on_cpu_low_ns)
        .Bind(o.on_cpu_high_ns)
        .Bind(o.runnable_low_ns)
        .Bind(o.runnable_high_ns)
        .Run();
  }
  for (const QueueSample& q : t.queues) {
    if (totals)
      Prepared(
          "INSERT INTO queues VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13) "
          "ON CONFLICT DO UPDATE SET capacity_count = ?6, observed_ns = observed_ns + ?7, "
          "occupancy_ns = occupancy_ns + ?8, capacity_ns = capacity_ns + ?9, "
          "full_ns = full_ns + ?10, empty_ns = empty_ns + ?11, puts_count = puts_count + ?12, "
          "gets_count = gets_count + ?13")
          .Bind(run_id)
          .Bind(q.id)
          .Bind(std::string_view(q.name))
          .Bind(q.producer_stage_id)
          .Bind(q.consumer_stage_id)
          .Bind(q.capacity)
          .Bind(q.observed_ns)
          .Bind(q.occupancy_ns)
          .Bind(q.capacity_ns)
          .Bind(q.full_ns)
          .Bind(q.empty_ns)
          .Bind(q.puts)
          .Bind(q.gets)
          .Run();
    if (course)
      Prepared("INSERT INTO queue_intervals VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)")
          .Bind(run_id)
          .Bind(t.start_ns)
          .Bind(q.id)
          .Bind(q.observed_ns)
          .Bind(q.occupancy_ns)
          .Bind(q.capacity_ns)
          .Bind(q.full_ns)
          .Bind(q.empty_ns)
          .Bind(q.puts)
          .Bind(q.gets)
          .Run();
  }
  for (const ResourceSample& r : t.resources) {
    if (totals)
      Prepared(
          "INSERT INTO resources VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9) "
          "ON CONFLICT DO UPDATE SET servers_count = ?5, "
          "acquisitions_count = acquisitions_count + ?6, wait_ns = wait_ns + ?7, "
          "hold_ns = hold_ns + ?8, moved_bytes = moved_bytes + ?9")
          .Bind(run_id)
          .Bind(r.id)
          .Bind(std::string_view(r.name))
          .Bind(std::string_view(r.kind))
          .Bind(r.servers)
          .Bind(r.acquisitions)
          .Bind(r.wait_ns)
          .Bind(r.hold_ns)
          .Bind(r.moved_bytes)
          .Run();
    if (!course || r.acquisitions + r.wait_ns + r.hold_ns + r.moved_bytes == 0) continue;
    Prepared("INSERT INTO resource_intervals VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)")
        .Bind(run_id)
        .Bind(t.start_ns)
        .Bind(r.id)
        .Bind(r.acquisitions)
        .Bind(r.wait_ns)
        .Bind(r.hold_ns)
        .Bind(r.moved_bytes)
        .Run();
  }
  if (totals && t.steps.steps > 0) {
    Prepared(
        "INSERT INTO steps VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7) ON CONFLICT DO UPDATE SET "
        "steps_count = steps_count + ?2, rows_count = rows_count + ?3, "
        "wait_ns = wait_ns + ?4, compute_ns = compute_ns + ?5, "
        "first_ns = COALESCE(first_ns, ?6), last_ns = COALESCE(MAX(last_ns, ?7), last_ns, ?7)")
        .Bind(run_id)
        .Bind(t.steps.steps)
        .Bind(t.steps.rows)
        .Bind(t.steps.wait_ns)
        .Bind(t.steps.compute_ns)
        .Bind(t.steps.first_ns)
        .Bind(t.steps.last_ns)
        .Run();
    std::map<int64_t, int64_t> buckets;
    for (const int64_t ns : t.steps.durations_ns) buckets[BucketMiddle(ns)]++;
    for (const auto& [step_ns, count] : buckets) {
      Prepared(
          "INSERT INTO step_histogram VALUES (?1, ?2, ?3) "
          "ON CONFLICT DO UPDATE SET steps_count = steps_count + ?3")
          .Bind(run_id)
          .Bind(step_ns)
          .Bind(count)
          .Run();
    }
  }
  for (const HostSample& h : t.hosts) {
    if (!std::isfinite(h.value)) continue;
    Statement& id =
        Prepared("SELECT metric_id FROM host_metrics WHERE run_id = ?1 AND metric = ?2");
    id.Bind(run_id).Bind(std::string_view(h.metric));
    int64_t metric_id;
    if (id.Step()) {
      metric_id = id.integer(0);
    } else {
      Statement& next =
          Prepared("SELECT COALESCE(MAX(metric_id) + 1, 0) FROM host_metrics WHERE run_id = ?1");
      next.Bind(run_id).Step();
      metric_id = next.integer(0);
      next.Reset();
    }
    id.Reset();
    if (totals)
      Prepared(
          "INSERT INTO host_metrics VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8 * ?7, ?8, ?8, ?8) "
          "ON CONFLICT DO UPDATE SET weight_ns = weight_ns + ?7, "
          "weighted_sum = weighted_sum + ?8 * ?7, minimum_value = MIN(minimum_value, ?8), "
          "maximum_value = MAX(maximum_value, ?8), last_value = ?8")
          .Bind(run_id)
          .Bind(metric_id)
          .Bind(std::string_view(h.metric))
          .Bind(std::string_view(h.unit))
          .Bind(std::string_view(h.kind == MetricKind::kCounter ? "counter" : "gauge"))
          .Bind(std::string_view(h.source))
          .Bind(t.duration_ns)
          .Bind(h.value)
          .Run();
    if (course)
      Prepared("INSERT OR REPLACE INTO host_intervals VALUES (?1, ?2, ?3, ?4)")
          .Bind(run_id)
          .Bind(t.start_ns)
          .Bind(metric_id)
          .Bind(h.value)
          .Run();
  }
}

void RunStore::Rollup(int64_t run_id, int64_t now_ns) {
  RollupInto(run_id, now_ns - 600 * kSecond, 0, 2 * kSecond);
  RollupInto(run_id, now_ns - 3600 * kSecond, 2 * kSecond, 16 * kSecond);
  RollupInto(run_id, now_ns - 86400 * kSecond, 16 * kSecond, 128 * kSecond);
  RollupMeasurements(run_id, now_ns - 600 * kSecond, 16 * kSecond);
  RollupMeasurements(run_id, now_ns - 3600 * kSecond, 128 * kSecond);
  RollupMeasurements(run_id, now_ns - 86400 * kSecond, 1024 * kSecond);
}

// Merges what lies in full buckets that ended before `before_ns` and was not merged by an earlier
// call. A row says its own length, so what was merged in a run before is merged again unchanged.
void RunStore::RollupMeasurements(int64_t run_id, int64_t before_ns, int64_t resolution_ns) {
  const int64_t limit = before_ns / resolution_ns * resolution_ns;
  int64_t& done = rolled_up_[{run_id, resolution_ns}];
  if (limit <= done) return;
  Transaction transaction(database_);
  database_.Execute(fmt::format(
      "CREATE TEMP TABLE sums AS SELECT i.run_id, MIN(i.start_ns), i.measurement_id, "
      "MAX(i.start_ns + i.duration_ns) - MIN(i.start_ns), "
      "CASE WHEN m.kind = 'counter' THEN SUM(i.value) "
      "ELSE SUM(i.value * i.duration_ns) / MAX(1, SUM(i.duration_ns)) END "
      "FROM measurement_intervals AS i JOIN measurements AS d USING (run_id, measurement_id) "
      "JOIN metrics AS m USING (run_id, metric) "
      "WHERE i.run_id = {0} AND i.start_ns >= {1} AND i.start_ns < {2} "
      "GROUP BY i.start_ns / {3}, i.measurement_id",
      run_id, done, limit, resolution_ns));
  database_.Execute(fmt::format(
      "DELETE FROM measurement_intervals WHERE run_id = {} AND start_ns >= {} AND start_ns < {}",
      run_id, done, limit));
  database_.Execute("INSERT INTO measurement_intervals SELECT * FROM sums");
  database_.Execute("DROP TABLE temp.sums");
  transaction.Commit();
  done = limit;
}

// Merges the intervals of resolution `finer_ns` in each full bucket of `resolution_ns` that ended
// before `before_ns`. The first interval of a bucket lends its start to the merged one.
void RunStore::RollupInto(int64_t run_id, int64_t before_ns, int64_t finer_ns,
                          int64_t resolution_ns) {
  const int64_t limit = before_ns / resolution_ns * resolution_ns;
  if (limit <= 0) return;
  Transaction transaction(database_);
  database_.Execute(
      "CREATE TEMP TABLE IF NOT EXISTS merged (start_ns INTEGER PRIMARY KEY, into_ns INTEGER)");
  database_.Execute("DELETE FROM merged");
  Statement map(database_,
                "INSERT INTO merged SELECT start_ns, MIN(start_ns) OVER (PARTITION BY start_ns / "
                "?4) FROM intervals WHERE run_id = ?1 AND resolution_ns = ?2 AND start_ns < ?3");
  map.Bind(run_id).Bind(finer_ns).Bind(limit).Bind(resolution_ns).Run();
  struct Merge {
    const char* table;
    const char* entity;
    const char* sums;
  };
  static constexpr Merge kMerges[] = {
      {"stage_intervals", "stage_id",
       "SUM(parallelism_ns), SUM(observed_ns), SUM(lifetime_ns), SUM(on_cpu_ns), SUM(runnable_ns), "
       "SUM(unattributed_ns)"},
      {"operator_intervals", "operator_id",
       "SUM(completions_count), SUM(rows_count), SUM(bytes_in_bytes), SUM(bytes_out_bytes), "
       "SUM(busy_ns), SUM(on_cpu_ns), SUM(runnable_ns), SUM(lock_wait_ns), SUM(wait_in_ns), "
       "SUM(wait_out_ns), SUM(on_cpu_low_ns), SUM(on_cpu_high_ns), SUM(runnable_low_ns), "
       "SUM(runnable_high_ns)"},
      {"queue_intervals", "queue_id",
       "SUM(observed_ns), SUM(occupancy_ns), SUM(capacity_ns), SUM(full_ns), SUM(empty_ns), "
       "SUM(puts_count), SUM(gets_count)"},
      {"resource_intervals", "resource_id",
       "SUM(acquisitions_count), SUM(wait_ns), SUM(hold_ns), SUM(moved_bytes)"},
      // A counter's value at the end is its largest; the mean would be another counter's.
      {"host_intervals", "metric_id",
       "CASE WHEN (SELECT kind FROM host_metrics AS h WHERE h.run_id = d.run_id AND h.metric_id = "
       "d.metric_id) = 'counter' THEN MAX(value) ELSE AVG(value) END"}};
  for (const Merge& merge : kMerges) {
    database_.Execute("DROP TABLE IF EXISTS temp.sums");
    database_.Execute(fmt::format(
        "CREATE TEMP TABLE sums AS SELECT d.run_id, m.into_ns, d.{1}, {2} FROM merged AS m CROSS "
        "JOIN {0} AS d ON d.run_id = {3} AND d.start_ns = m.start_ns GROUP BY m.into_ns, d.{1}",
        merge.table, merge.entity, merge.sums, run_id));
    database_.Execute(fmt::format(
        "DELETE FROM {} WHERE run_id = {} AND start_ns IN (SELECT start_ns FROM merged)",
        merge.table, run_id));
    database_.Execute(fmt::format("INSERT INTO {} SELECT * FROM sums", merge.table));
  }
  database_.Execute("DROP TABLE temp.sums");
  database_.Execute(fmt::format(
      "CREATE TEMP TABLE sums AS SELECT run_id, m.into_ns, SUM(duration_ns), {1}, "
      "SUM(steps_count), SUM(step_rows_count), SUM(step_wait_ns), SUM(step_compute_ns) FROM merged "
      "AS m CROSS JOIN intervals AS d ON d.run_id = {0} AND d.start_ns = m.start_ns GROUP BY "
      "m.into_ns",
      run_id, resolution_ns));
  database_.Execute(fmt::format(
      "DELETE FROM intervals WHERE run_id = {} AND start_ns IN (SELECT start_ns FROM merged)",
      run_id));
  database_.Execute("INSERT INTO intervals SELECT * FROM sums");
  database_.Execute("DROP TABLE temp.sums");
  transaction.Commit();
}

void RunStore::FinishRun(int64_t run_id, RunState state) {
  Prepared("UPDATE runs SET state = ?2 WHERE run_id = ?1 AND state = 'recording'")
      .Bind(run_id)
      .Bind(std::string_view(RunStateName(state)))
      .Run();
}

int64_t RunStore::FindRun(const std::string& run) { return FindRunOrThrow(database_, run); }

int64_t RunStore::AddCalibration(const CalibrationInfo& info,
                                 const std::vector<CeilingRow>& ceilings) {
  Transaction transaction(database_);
  Prepared(
      "INSERT INTO calibrations (measured_realtime_ns, hostname, kernel, cpu_model, folder, "
      "headrace_version) VALUES (?1, ?2, ?3, ?4, ?5, ?6)")
      .Bind(info.measured_realtime_ns)
      .Bind(std::string_view(info.hostname))
      .Bind(std::string_view(info.kernel))
      .Bind(std::string_view(info.cpu_model))
      .Bind(std::string_view(info.folder))
      .Bind(std::string_view(HEADRACE_VERSION))
      .Run();
  const int64_t id = database_.last_id();
  int64_t number = 0;
  for (const CeilingRow& row : ceilings) {
    Prepared(
        "INSERT INTO ceilings (calibration_id, ceiling_id, metric, unit, subject, threads_count, "
        "size_bytes, depth_count, value, minimum_value, maximum_value, repetitions_count, note) "
        "VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13)")
        .Bind(id)
        .Bind(number++)
        .Bind(std::string_view(row.metric))
        .Bind(std::string_view(row.unit))
        .Bind(std::string_view(row.subject))
        .Bind(row.threads_count)
        .Bind(row.size_bytes)
        .Bind(row.depth_count)
        .Bind(row.value)
        .Bind(row.minimum)
        .Bind(row.maximum)
        .Bind(row.repetitions_count)
        .Bind(std::string_view(row.note))
        .Run();
  }
  transaction.Commit();
  return id;
}

void RunStore::RemoveRun(int64_t run_id) {
  Transaction transaction(database_);
  Prepared("DELETE FROM runs WHERE run_id = ?1").Bind(run_id).Run();  // the rest cascades
  transaction.Commit();
}

int64_t RunStore::used_bytes() {
  return (database_.Integer("PRAGMA page_count") - database_.Integer("PRAGMA freelist_count")) *
         database_.Integer("PRAGMA page_size");
}

std::vector<int64_t> RunStore::Retain(const Retention& retention) {
  struct Finished {
    int64_t id, started_ns;
  };
  std::vector<Finished> finished;  // oldest first
  {
    Statement runs(database_,
                   "SELECT run_id, started_realtime_ns FROM runs WHERE state != 'recording' "
                   "ORDER BY run_id");
    while (runs.Step()) finished.push_back({runs.integer(0), runs.integer(1)});
  }
  std::vector<int64_t> removed;
  const int64_t now = RealtimeNs();
  for (size_t i = 0; i < finished.size(); i++) {
    const bool old =
        retention.older_than_ns && now - finished[i].started_ns > *retention.older_than_ns;
    const bool many = retention.keep && static_cast<int64_t>(finished.size() - i) > *retention.keep;
    const bool large = retention.max_bytes && used_bytes() > *retention.max_bytes;
    if (!old && !many && !large) continue;
    RemoveRun(finished[i].id);
    removed.push_back(finished[i].id);
  }
  if (!removed.empty()) {
    Statement vacuum(database_, "PRAGMA incremental_vacuum");
    while (vacuum.Step()) {
    }
  }
  return removed;
}

void RunStore::SetTags(int64_t run_id, const std::string& tags) {
  Prepared("UPDATE runs SET tags = ?2 WHERE run_id = ?1")
      .Bind(run_id)
      .Bind(std::string_view(tags))
      .Run();
}

void RunStore::SetPrediction(int64_t run_id, const PredictionRow& prediction) {
  Prepared("INSERT OR REPLACE INTO predictions VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)")
      .Bind(run_id)
      .Bind(prediction.from_run_id)
      .Bind(prediction.batches_per_second)
      .Bind(prediction.low)
      .Bind(prediction.high)
      .Bind(std::string_view(prediction.limited_by))
      .Bind(std::string_view(prediction.limited_by_kind))
      .Run();
}

const char* ComparisonStateName(ComparisonState state) {
  switch (state) {
    case ComparisonState::kRunning:
      return "running";
    case ComparisonState::kComplete:
      return "complete";
    case ComparisonState::kInterrupted:
      return "interrupted";
    case ComparisonState::kFailed:
      return "failed";
  }
  HR_CHECK(false, "a state of comparisons");
}

int64_t RunStore::BeginComparison(const ComparisonRow& comparison) {
  const auto self = probes::ReadProcessStat(getpid());
  Prepared(
      "INSERT INTO comparisons (name, started_realtime_ns, state, a_label, b_label, seed, "
      "hostname, writer_pid, writer_start) VALUES (?1, ?2, 'running', ?3, ?4, ?5, ?6, ?7, ?8)")
      .Bind(std::string_view(comparison.name))
      .Bind(comparison.started_realtime_ns)
      .Bind(std::string_view(comparison.a_label))
      .Bind(std::string_view(comparison.b_label))
      .Bind(std::string_view(comparison.seed))
      .Bind(HostName())
      .Bind(int64_t{getpid()})
      .Bind(self ? self->start_ticks : int64_t{0})
      .Run();
  return sqlite3_last_insert_rowid(database_.handle());
}

void RunStore::SetComparisonRun(int64_t comparison_id, const ComparisonRunRow& run) {
  Prepared("INSERT OR REPLACE INTO comparison_runs VALUES (?1, ?2, ?3, ?4, ?5, ?6)")
      .Bind(comparison_id)
      .Bind(run.order_index)
      .Bind(run.pair_index)
      .Bind(std::string_view(&run.side, 1))
      .Bind(run.run_id)
      .Bind(std::string_view(run.left_out))
      .Run();
}

void RunStore::FinishComparison(int64_t comparison_id, ComparisonState state, int64_t duration_ns,
                                const std::string& verdict, const std::string& result_json) {
  Prepared(
      "UPDATE comparisons SET state = ?2, duration_ns = ?3, verdict = ?4, result_json = ?5 "
      "WHERE comparison_id = ?1")
      .Bind(comparison_id)
      .Bind(std::string_view(ComparisonStateName(state)))
      .Bind(duration_ns)
      .Bind(std::string_view(verdict))
      .Bind(std::string_view(result_json))
      .Run();
}

void RunStore::RemoveComparison(int64_t comparison_id) {
  Prepared("DELETE FROM comparisons WHERE comparison_id = ?1").Bind(comparison_id).Run();
}

void RunStore::SetDecision(int64_t run_id, const DecisionRow& decision) {
  Transaction transaction(database_);
  Prepared("DELETE FROM decision_changes WHERE run_id = ?1 AND decision_index = ?2")
      .Bind(run_id)
      .Bind(decision.index)
      .Run();
  Prepared(
      "INSERT OR REPLACE INTO decisions VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, "
      "?12, ?13, ?14, ?15, ?16, ?17, ?18)")
      .Bind(run_id)
      .Bind(decision.index)
      .Bind(decision.at_ns)
      .Bind(decision.applied_ns)
      .Bind(decision.observed_ns)
      .Bind(std::string_view(decision.action))
      .Bind(std::string_view(decision.limited_by))
      .Bind(std::string_view(decision.limited_by_kind))
      .Bind(decision.now_rate)
      .Bind(decision.predicted_rate)
      .Bind(decision.predicted_low)
      .Bind(decision.predicted_high)
      .Bind(decision.observed_rate)
      .Bind(decision.observed_low)
      .Bind(decision.observed_high)
      .Bind(std::string_view(decision.verdict))
      .Bind(std::string_view(decision.reason))
      .Bind(std::string_view(decision.detail_json))
      .Run();
  for (const DecisionChangeRow& change : decision.changes) {
    Prepared("INSERT INTO decision_changes VALUES (?1, ?2, ?3, ?4, ?5)")
        .Bind(run_id)
        .Bind(decision.index)
        .Bind(std::string_view(change.knob))
        .Bind(std::string_view(change.from))
        .Bind(std::string_view(change.to))
        .Run();
  }
  transaction.Commit();
}

void RunStore::SetConditions(int64_t run_id, const RunConditions& conditions) {
  Prepared(
      "UPDATE runs SET kind = ?2, settings_text = ?3, table_text = ?4, cold = ?5, "
      "resident_ratio = ?6, resident_before_ratio = ?7, resident_note = NULLIF(?8, ''), "
      "epoch_splits_count = ?9, element_order = ?10, order_window_count = ?11 WHERE run_id = ?1")
      .Bind(run_id)
      .Bind(std::string_view(conditions.kind))
      .Bind(std::string_view(conditions.settings_text))
      .Bind(std::string_view(conditions.table_text))
      .Bind(int64_t{conditions.cold})
      .Bind(conditions.resident_ratio)
      .Bind(conditions.resident_before_ratio)
      .Bind(std::string_view(conditions.resident_note))
      .Bind(conditions.epoch_splits_count)
      .Bind(std::string_view(conditions.file_order ? "file" : "any"))
      .Bind(conditions.order_window_count)
      .Run();
}

void RunStore::SetDedupSample(int64_t run_id, double now, double clustered) {
  Prepared("UPDATE runs SET sample_dedup_ratio = ?2, clustered_dedup_ratio = ?3 WHERE run_id = ?1")
      .Bind(run_id)
      .Bind(now)
      .Bind(clustered)
      .Run();
}

void RunStore::CopyRun(int64_t run_id, const std::string& path) {
  collectors::CopyRun(database_, run_id, path, mode_);
}

bool RunStore::IsDisplaced() {
  int moved = 0;
  sqlite3_file_control(database_.handle(), "main", SQLITE_FCNTL_HAS_MOVED, &moved);
  if (moved == 0) return false;
  const std::string& path = database_.path();
  struct stat info;
  const bool replaced = stat(path.c_str(), &info) == 0;
  // A folder that may not be looked into for a while says nothing.
  if (!replaced && errno != ENOENT && errno != ENOTDIR) return false;
  sqlite3_db_config(database_.handle(), SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, nullptr);
  if (replaced && log_id_.second != 0 && FileId(path + "-wal") == log_id_) {
    unlink((path + "-wal").c_str());
    unlink((path + "-shm").c_str());
  }
  return true;
}

void RunStore::MoveBeside(int64_t run_id, std::string* path) {
  const std::string beside = database_.path() + ".recovered-" + RandomDigits().substr(0, 8);
  collectors::CopyRun(database_, run_id, beside, mode_);
  *path = beside;
  prepared_.clear();
  rolled_up_.clear();  // what was merged is merged again unchanged
  database_ = Database(beside, Database::Mode::kReadWrite);
  Prepare();
}

}  // namespace headrace::collectors
