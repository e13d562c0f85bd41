#include "dashboards/pages/course.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "dashboards/sql_values.h"

namespace headrace::dashboards {
namespace {

using collectors::ReadStore;
using collectors::SqlResult;
using collectors::SqlValue;

constexpr double kNs = 1e9;
constexpr double kMostWindows = 4000;
constexpr double kMostSeconds = 9e9;  // of 64 bits of nanoseconds

// Which window of the chart a stored interval belongs to.
class Buckets {
 public:
  Buckets(const CourseRange& range, std::vector<CourseWindow>* windows)
      : width_ns_(static_cast<int64_t>(std::llround(range.width_s * kNs))), windows_(windows) {}

  // Makes the window of an interval that begins then.
  CourseWindow& Make(int64_t start_ns, int64_t duration_ns) {
    const int64_t key = Key(start_ns);
    const auto [found, inserted] = index_.emplace(key, windows_->size());
    if (inserted) {
      windows_->push_back({});
      windows_->back().start_ns = start_ns;
    }
    CourseWindow& window = (*windows_)[found->second];
    window.duration_ns = start_ns + duration_ns - window.start_ns;
    return window;
  }
  std::optional<size_t> Find(int64_t start_ns) const {
    const auto found = index_.find(Key(start_ns));
    return found == index_.end() ? std::nullopt : std::optional(found->second);
  }

 private:
  int64_t Key(int64_t start_ns) const { return width_ns_ > 0 ? start_ns / width_ns_ : start_ns; }

  int64_t width_ns_;
  std::vector<CourseWindow>* windows_;
  std::map<int64_t, size_t> index_;
};

void Add(const std::optional<double>& value, bool first, std::optional<double>* sum) {
  if (!value || (!first && !*sum)) {
    sum->reset();
  } else {
    *sum = sum->value_or(0) + *value;
  }
}

void AddStage(const std::vector<SqlValue>& row, StageCourse* stage) {
  const bool first = stage->lifetime_ns == 0 && stage->busy_ns == 0 && stage->parallelism == 0;
  const double duration_ns = RealOf(row[1]);
  stage->lifetime_ns += RealOf(row[3]);
  stage->busy_ns += RealOf(row[4]);
  stage->wait_in_ns += RealOf(row[8]);
  stage->wait_out_ns += RealOf(row[9]);
  stage->parallelism += RealOf(row[10]) * duration_ns;
  // Without work there is nothing to tell apart.
  const bool idle = RealOf(row[4]) == 0;
  Add(idle ? std::optional<double>(0) : NumberOf(row[5]), first, &stage->on_cpu_ns);
  Add(idle ? std::optional<double>(0) : NumberOf(row[6]), first, &stage->blocked_ns);
  Add(idle ? std::optional<double>(0) : NumberOf(row[7]), first, &stage->runnable_ns);
}

size_t LaneOf(const std::string& name, std::vector<CourseLane>* lanes) {
  for (size_t i = 0; i < lanes->size(); ++i) {
    if ((*lanes)[i].name == name) return i;
  }
  lanes->push_back({name, "", "", 0});
  return lanes->size() - 1;
}

void ReadStages(ReadStore& store, int64_t run_id, const SqlValue& from, const SqlValue& to,
                const Buckets& buckets, RunCourse* course) {
  // What the trainer's own threads do stands in the steps.
  const SqlResult stages = store.Query(
      "SELECT stage FROM stage_summary WHERE run_id = ?1 AND stage NOT IN ('', 'consumer') ORDER "
      "BY stage_index",
      {run_id});
  for (const auto& row : stages.rows) LaneOf(TextOf(row[0]), &course->stages);
  course->stage_values.assign(course->stages.size(),
                              std::vector<StageCourse>(course->windows.size()));
  const SqlResult rows = store.Query(
      "SELECT start_ns, duration_ns, stage, lifetime_ns, busy_ns, operators_on_cpu_ns, "
      "operators_blocked_ns, operators_runnable_ns, wait_in_ns, wait_out_ns, parallelism_count "
      "FROM stage_interval WHERE run_id = ?1 AND start_ns >= ?2 AND start_ns < ?3 AND stage NOT IN "
      "('', 'consumer')",
      {run_id, from, to});
  for (const auto& row : rows.rows) {
    const auto window = buckets.Find(IntegerOf(row[0]));
    if (!window) continue;
    const size_t lane = LaneOf(TextOf(row[2]), &course->stages);
    if (lane >= course->stage_values.size()) continue;
    AddStage(row, &course->stage_values[lane][*window]);
  }
  for (auto& lane : course->stage_values) {
    for (size_t i = 0; i < lane.size(); ++i) {
      const auto ns = static_cast<double>(course->windows[i].duration_ns);
      if (ns > 0) lane[i].parallelism /= ns;
    }
  }
}

void ReadQueues(ReadStore& store, int64_t run_id, const SqlValue& from, const SqlValue& to,
                const Buckets& buckets, RunCourse* course) {
  const SqlResult queues = store.Query(
      "SELECT queue, producer_stage, consumer_stage, capacity_count FROM queue_summary WHERE "
      "run_id = ?1",
      {run_id});
  for (const auto& row : queues.rows) {
    course->queues.push_back({TextOf(row[0]), TextOf(row[1]), TextOf(row[2]), IntegerOf(row[3])});
  }
  course->queue_values.assign(course->queues.size(),
                              std::vector<QueueCourse>(course->windows.size()));
  const SqlResult rows = store.Query(
      "SELECT start_ns, duration_ns, queue, mean_occupancy_ratio, full_ratio, empty_ratio FROM "
      "queue_interval WHERE run_id = ?1 AND start_ns >= ?2 AND start_ns < ?3",
      {run_id, from, to});
  for (const auto& row : rows.rows) {
    const auto window = buckets.Find(IntegerOf(row[0]));
    const auto fill = NumberOf(row[3]);
    if (!window || !fill) continue;
    const size_t lane = LaneOf(TextOf(row[2]), &course->queues);
    if (lane >= course->queue_values.size()) continue;
    QueueCourse& queue = course->queue_values[lane][*window];
    const double ns = RealOf(row[1]);
    queue.weight_ns += ns;
    queue.fill += *fill * ns;
    queue.full += RealOf(row[4]) * ns;
    queue.empty += RealOf(row[5]) * ns;
  }
}

}  // namespace

CourseRange RangeOf(double from_s, double to_s, double px, double full_s) {
  CourseRange range{std::min(from_s, kMostSeconds),
                    to_s > 0 ? std::min(to_s, kMostSeconds) : full_s, 0};
  if (range.to_s < range.from_s) {
    throw Error(ExitCode::kUsage, "the range ends before it begins", "from, to",
                "give from < to, in seconds since the run began");
  }
  const double windows = std::clamp(px, 1.0, kMostWindows);
  // What is recorded of it: windows beyond that would be wider for nothing.
  const double least =
      (std::min(range.to_s, std::max(full_s, range.from_s)) - range.from_s) / windows;
  if (least <= 0.02) return range;  // no shorter than what is stored
  const double power = std::pow(10, std::floor(std::log10(least)));
  for (const double step : {1.0, 2.0, 5.0, 10.0}) {
    range.width_s = step * power;
    if (range.width_s >= least * (1 - 1e-9)) break;
  }
  return range;
}

int64_t NsOf(double seconds) { return std::llround(std::clamp(seconds, 0.0, kMostSeconds) * kNs); }

double RecordedSeconds(ReadStore& store, int64_t run_id) {
  const SqlResult run =
      store.Query("SELECT duration_ns FROM run_summary WHERE run_id = ?1", {run_id});
  return run.rows.empty() ? 0 : RealOf(run.rows[0][0]) / kNs;
}

RunCourse ReadCourse(ReadStore& store, int64_t run_id, const CourseRange& range) {
  RunCourse course;
  course.full_s = RecordedSeconds(store, run_id);
  // An interval that begins before the range and reaches into it belongs to it.
  const int64_t from_ns = NsOf(range.from_s);
  const SqlValue to = NsOf(range.to_s);
  const SqlResult before = store.Query(
      "SELECT start_ns FROM step_interval WHERE run_id = ?1 AND start_ns <= ?2 ORDER BY start_ns "
      "DESC LIMIT 1",
      {run_id, from_ns});
  const SqlValue from = before.rows.empty() ? from_ns : IntegerOf(before.rows[0][0]);
  Buckets buckets(range, &course.windows);
  const SqlResult steps = store.Query(
      "SELECT start_ns, duration_ns, steps_count, rows_count, wait_ns, compute_ns FROM "
      "step_interval WHERE run_id = ?1 AND start_ns >= ?2 AND start_ns < ?3 ORDER BY start_ns",
      {run_id, from, to});
  for (const auto& row : steps.rows) {
    CourseWindow& window = buckets.Make(IntegerOf(row[0]), IntegerOf(row[1]));
    window.steps += IntegerOf(row[2]);
    window.rows += IntegerOf(row[3]);
    window.wait_ns += IntegerOf(row[4]);
    window.compute_ns += IntegerOf(row[5]);
  }
  const SqlResult times = store.Query(
      "SELECT start_ns, step_ns, steps_count FROM step_time_interval WHERE run_id = ?1 AND "
      "start_ns >= ?2 AND start_ns < ?3",
      {run_id, from, to});
  for (const auto& row : times.rows) {
    if (const auto window = buckets.Find(IntegerOf(row[0]))) {
      course.windows[*window].step_times[IntegerOf(row[1])] += IntegerOf(row[2]);
    }
  }
  ReadStages(store, run_id, from, to, buckets, &course);
  ReadQueues(store, run_id, from, to, buckets, &course);
  return course;
}

std::optional<double> StepQuantile(const std::map<int64_t, int64_t>& step_times, double q) {
  int64_t all = 0, below = 0;
  for (const auto& [ns, count] : step_times) all += count;
  for (const auto& [ns, count] : step_times) {
    below += count;
    if (static_cast<double>(below) >= q * static_cast<double>(all)) {
      return static_cast<double>(ns) / kNs;
    }
  }
  return std::nullopt;
}

}  // namespace headrace::dashboards
