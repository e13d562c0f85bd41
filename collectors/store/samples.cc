// What Append stores of accounts: totals, the course, and the ranges of full detail.
#include <cmath>

#include "collectors/store/store.h"

namespace headrace::collectors {
namespace {

constexpr double kBucketGrowth = 1.02;
constexpr int64_t kKeptDetail = -1;  // as the resolution of an interval: no rollup takes it

bool WritesTotals(AppendPart part) {
  return part == AppendPart::kAll || part == AppendPart::kTotals;
}
bool WritesCourse(AppendPart part) { return part != AppendPart::kTotals; }

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

int64_t BucketMiddle(int64_t ns) {
  if (ns <= 1) return 1;
  const double bucket = std::floor(std::log(static_cast<double>(ns)) / std::log(kBucketGrowth));
  return std::llround(std::pow(kBucketGrowth, bucket + 0.5));
}

}  // namespace

void RunStore::Append(int64_t run_id, const std::vector<IntervalSample>& intervals,
                      const MeasurementBatch& measurements, AppendPart part) {
  Transaction transaction(database_);
  for (const IntervalSample& interval : intervals) AppendOne(run_id, interval, part);
  if (WritesTotals(part)) AppendOperatorTotals(run_id, intervals);
  AppendMeasurements(run_id, measurements);
  transaction.Commit();
}

// Operators are the most numerous: their totals are added up first and written once.
void RunStore::AppendOperatorTotals(int64_t run_id, const std::vector<IntervalSample>& intervals) {
  std::map<int64_t, OperatorSample> totals;
  for (const IntervalSample& interval : intervals) {
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
}

// Totals and deltas are two statements per entity, both prepared once.
void RunStore::AppendOne(int64_t run_id, const IntervalSample& t, AppendPart part) {
  Prepared("UPDATE runs SET duration_ns = MAX(duration_ns, ?2) WHERE run_id = ?1")
      .Bind(run_id)
      .Bind(t.start_ns + t.duration_ns)
      .Run();
  if (WritesCourse(part))
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
  AppendStages(run_id, t, part);
  AppendOperatorCourse(run_id, t, part);
  AppendQueues(run_id, t, part);
  AppendResources(run_id, t, part);
  AppendSteps(run_id, t, part);
  AppendHosts(run_id, t, part);
}

void RunStore::AppendStages(int64_t run_id, const IntervalSample& t, AppendPart part) {
  const bool totals = WritesTotals(part);
  const bool course = WritesCourse(part);
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
}

void RunStore::AppendOperatorCourse(int64_t run_id, const IntervalSample& t, AppendPart part) {
  if (!WritesCourse(part)) return;
  for (const OperatorSample& o : t.operators) {
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
}

void RunStore::AppendQueues(int64_t run_id, const IntervalSample& t, AppendPart part) {
  const bool totals = WritesTotals(part);
  const bool course = WritesCourse(part);
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
}

void RunStore::AppendResources(int64_t run_id, const IntervalSample& t, AppendPart part) {
  const bool totals = WritesTotals(part);
  const bool course = WritesCourse(part);
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
}

void RunStore::AppendSteps(int64_t run_id, const IntervalSample& t, AppendPart part) {
  if (!WritesTotals(part) || t.steps.steps == 0) return;
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

// The number of a host metric within its run: its own, or the next one.
int64_t RunStore::HostMetricId(int64_t run_id, const std::string& metric) {
  Statement& id = Prepared("SELECT metric_id FROM host_metrics WHERE run_id = ?1 AND metric = ?2");
  id.Bind(run_id).Bind(std::string_view(metric));
  const bool known = id.Step();
  const int64_t number = known ? id.integer(0) : 0;
  id.Reset();
  if (known) return number;
  Statement& next =
      Prepared("SELECT COALESCE(MAX(metric_id) + 1, 0) FROM host_metrics WHERE run_id = ?1");
  next.Bind(run_id).Step();
  const int64_t free = next.integer(0);
  next.Reset();
  return free;
}

void RunStore::AppendHosts(int64_t run_id, const IntervalSample& t, AppendPart part) {
  const bool totals = WritesTotals(part);
  const bool course = WritesCourse(part);
  for (const HostSample& h : t.hosts) {
    if (!std::isfinite(h.value)) continue;
    const int64_t metric_id = HostMetricId(run_id, h.metric);
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

void RunStore::SetDetailRange(int64_t run_id, const DetailRange& range) {
  Prepared("INSERT OR REPLACE INTO detail_ranges VALUES (?1, ?2, ?3, ?4)")
      .Bind(run_id)
      .Bind(range.start_ns)
      .Bind(range.end_ns)
      .Bind(std::string_view(range.reason))
      .Run();
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

}  // namespace headrace::collectors
