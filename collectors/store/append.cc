// What Append stores of accounts: totals, the course, and the ranges of full detail.
#include <cmath>

#include "collectors/store/columns.h"
#include "collectors/store/store.h"

namespace headrace::collectors {
namespace {

constexpr double kBucketGrowth = 1.02;
constexpr double kIntervalBucketGrowth =
    1.1;                             // of a single interval's steps, of which there are few
constexpr int64_t kKeptDetail = -1;  // as the resolution of an interval: no rollup takes it

bool WritesTotals(AppendPart part) {
  return part == AppendPart::kAll || part == AppendPart::kTotals;
}
bool WritesCourse(AppendPart part) { return part != AppendPart::kTotals; }

int64_t BucketMiddle(int64_t ns, double growth) {
  if (ns <= 1) return 1;
  const double bucket = std::floor(std::log(static_cast<double>(ns)) / std::log(growth));
  return std::llround(std::pow(growth, bucket + 0.5));
}

std::map<int64_t, int64_t> Buckets(const std::vector<int64_t>& durations_ns, double growth) {
  std::map<int64_t, int64_t> buckets;
  for (const int64_t ns : durations_ns) buckets[BucketMiddle(ns, growth)]++;
  return buckets;
}

// Adds `value` to a sum that is not known any more once a summand of it is not.
void AddKnown(const std::optional<int64_t>& value, std::optional<int64_t>* sum) {
  *sum = value && *sum ? std::optional(*value + **sum) : std::nullopt;
}

// The stages of an interval with the sums over their operators, so that the course of a stage is
// read without those of all operators.
std::vector<StageSample> WithOperatorSums(const IntervalSample& t) {
  std::vector<StageSample> stages = t.stages;
  for (StageSample& stage : stages) {
    stage.busy_ns = stage.wait_in_ns = stage.wait_out_ns = 0;
    stage.operators_on_cpu_ns = stage.operators_runnable_ns = 0;
    for (const OperatorSample& o : t.operators) {
      if (o.stage_id != stage.id) continue;
      *stage.busy_ns += o.busy_ns;
      *stage.wait_in_ns += o.wait_in_ns;
      *stage.wait_out_ns += o.wait_out_ns;
      if (o.busy_ns == 0) continue;  // nothing to tell apart
      AddKnown(o.on_cpu_ns, &stage.operators_on_cpu_ns);
      AddKnown(o.runnable_ns, &stage.operators_runnable_ns);
    }
  }
  return stages;
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

template <const auto& table, typename Sample>
void RunStore::AppendTotals(int64_t run_id, const Sample& sample) {
  static const std::string sql = UpsertTotals(table);
  Statement& upsert = Prepared(sql.c_str());
  upsert.Bind(run_id).Bind(sample.id);
  BindTotals(table, sample, &upsert);
  upsert.Run();
}

template <const auto& table, typename Sample>
void RunStore::AppendCourse(int64_t run_id, int64_t start_ns, const Sample& sample) {
  static const std::string sql = InsertInterval(table);
  Statement& insert = Prepared(sql.c_str());
  insert.Bind(run_id).Bind(start_ns).Bind(sample.id);
  BindInterval(table, sample, &insert);
  insert.Run();
}

// Operators are the most numerous: their totals are added up first and written once.
void RunStore::AppendOperatorTotals(int64_t run_id, const std::vector<IntervalSample>& intervals) {
  std::map<int64_t, OperatorSample> totals;
  for (const IntervalSample& interval : intervals) {
    for (const OperatorSample& o : interval.operators) {
      const auto [it, inserted] = totals.emplace(o.id, o);
      if (!inserted) AddUp(kOperators, o, &it->second);
    }
  }
  for (const auto& [id, sum] : totals) AppendTotals<kOperators>(run_id, sum);
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
  const std::vector<StageSample> stages = WithOperatorSums(t);
  if (WritesTotals(part)) {
    for (const StageSample& s : stages) AppendTotals<kStages>(run_id, s);
    for (const QueueSample& q : t.queues) AppendTotals<kQueues>(run_id, q);
    for (const ResourceSample& r : t.resources) AppendTotals<kResources>(run_id, r);
  }
  if (WritesCourse(part)) {
    for (const StageSample& s : stages) AppendCourse<kStages>(run_id, t.start_ns, s);
    for (const OperatorSample& o : t.operators) {
      if (!IsIdle(kOperators, o)) AppendCourse<kOperators>(run_id, t.start_ns, o);
    }
    for (const QueueSample& q : t.queues) AppendCourse<kQueues>(run_id, t.start_ns, q);
    for (const ResourceSample& r : t.resources) {
      if (!IsIdle(kResources, r)) AppendCourse<kResources>(run_id, t.start_ns, r);
    }
  }
  AppendSteps(run_id, t, part);
}

void RunStore::AppendSteps(int64_t run_id, const IntervalSample& t, AppendPart part) {
  if (WritesCourse(part)) {
    for (const auto& [step_ns, count] : Buckets(t.steps.durations_ns, kIntervalBucketGrowth)) {
      Prepared("INSERT INTO step_time_intervals VALUES (?1, ?2, ?3, ?4)")
          .Bind(run_id)
          .Bind(t.start_ns)
          .Bind(step_ns)
          .Bind(count)
          .Run();
    }
  }
  if (part == AppendPart::kDetail) AppendStepRecords(run_id, t);
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
  for (const auto& [step_ns, count] : Buckets(t.steps.durations_ns, kBucketGrowth)) {
    Prepared(
        "INSERT INTO step_histogram VALUES (?1, ?2, ?3) "
        "ON CONFLICT DO UPDATE SET steps_count = steps_count + ?3")
        .Bind(run_id)
        .Bind(step_ns)
        .Bind(count)
        .Run();
  }
}

void RunStore::AppendStepRecords(int64_t run_id, const IntervalSample& t) {
  int64_t index = 0;
  for (const StepRecord& step : t.steps.records) {
    Prepared("INSERT INTO step_records VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)")
        .Bind(run_id)
        .Bind(t.start_ns)
        .Bind(index++)
        .Bind(step.end_ns)
        .Bind(step.wait_ns)
        .Bind(step.compute_ns)
        .Bind(step.rows)
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
  // Single steps are detail alone.
  Prepared("DELETE FROM step_records WHERE run_id = ?1 AND start_ns >= ?2 AND start_ns < ?3")
      .Bind(run_id)
      .Bind(range.start_ns)
      .Bind(range.end_ns)
      .Run();
  Prepared("DELETE FROM detail_ranges WHERE run_id = ?1 AND start_ns = ?2")
      .Bind(run_id)
      .Bind(range.start_ns)
      .Run();
  transaction.Commit();
}

}  // namespace headrace::collectors
