#include "dashboards/export/trace_courses.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "dashboards/sql_values.h"

namespace headrace::dashboards {
namespace {

using collectors::SqlResult;
using collectors::SqlValue;

constexpr double kPerSecond = 1e9, kPerTime = 1, kAsStored = 0;

constexpr CourseColumn kStepColumns[] = {
    {"steps_count", "steps", "steps/s", kPerSecond},
    {"rows_count", "rows", "rows/s", kPerSecond},
    {"wait_ns", "waits for a batch", "ratio of time", kPerTime},
    {"compute_ns", "computes", "ratio of time", kPerTime}};
constexpr CourseColumn kStageColumns[] = {
    {"parallelism_count", "threads set", "threads", kAsStored},
    {"on_cpu_ns", "on a core", "threads", kPerTime},
    {"runnable_ns", "wants a core", "threads", kPerTime},
    {"unattributed_ns", "outside operators", "threads", kPerTime}};
constexpr CourseColumn kOperatorColumns[] = {
    {"busy_ns", "busy", "threads", kPerTime},
    {"on_cpu_ns", "on a core", "threads", kPerTime},
    {"blocked_ns", "blocked", "threads", kPerTime},
    {"runnable_ns", "wants a core", "threads", kPerTime},
    {"lock_wait_ns", "waits for a lock", "threads", kPerTime},
    {"wait_in_ns", "waits for input", "threads", kPerTime},
    {"wait_out_ns", "waits for room", "threads", kPerTime},
    {"rows_count", "rows", "rows/s", kPerSecond},
    {"bytes_in_bytes", "bytes in", "bytes/s", kPerSecond},
    {"bytes_out_bytes", "bytes out", "bytes/s", kPerSecond}};
constexpr CourseColumn kQueueColumns[] = {{"mean_occupancy_ratio", "fill", "ratio", kAsStored},
                                          {"full_ratio", "full", "ratio of time", kAsStored},
                                          {"empty_ratio", "empty", "ratio of time", kAsStored},
                                          {"gets_count", "taken", "elements/s", kPerSecond}};
constexpr CourseColumn kResourceColumns[] = {{"wait_ns", "waiting", "threads", kPerTime},
                                             {"hold_ns", "held", "holders", kPerTime},
                                             {"moved_bytes", "moved", "bytes/s", kPerSecond}};

constexpr TracedMetric kTracedMetrics[] = {
    {"host_busy_cores", "busy cores", "cores", kAsStored},
    {"host_cpu_ns", "CPU", "cores", kPerTime},
    {"steal_ns", "stolen by the hypervisor", "cores", kPerTime},
    {"pressure_ns", "pressure", "ratio of time", kPerTime},
    {"cgroup_cpu_ns", "CPU of the control group", "cores", kPerTime},
    {"cgroup_throttled_ns", "throttled", "ratio of time", kPerTime},
    {"disk_bytes", "disk", "bytes/s", kPerSecond},
    {"nic_received_bytes", "network received", "bytes/s", kPerSecond},
    {"nic_sent_bytes", "network sent", "bytes/s", kPerSecond},
    {"gpu_use_ratio", "accelerator busy", "ratio of time", kAsStored},
    {"gpu_memory_bytes", "accelerator memory", "bytes", kAsStored},
    {"collector_cpu_ns", "CPU of the collector", "cores", kPerTime},
    {"process_cpu_ns", "CPU", "cores", kPerTime},
    {"process_rss_bytes", "resident memory", "bytes", kAsStored},
    {"process_read_bytes", "read from devices", "bytes/s", kPerSecond}};

TraceCourse MakeTraceCourse(const char* view, const std::string& keys, size_t num_keys,
                            std::span<const CourseColumn> columns, bool idle_is_absent) {
  std::string selected = "start_ns, duration_ns, " + keys;
  for (const CourseColumn& column : columns) selected += fmt::format(", {}", column.column);
  return {{view, selected}, columns, num_keys, idle_is_absent};
}

}  // namespace

TraceCourse StepTraceCourse() {
  return MakeTraceCourse("step_interval", "'' AS key", 1, kStepColumns, false);
}
TraceCourse StageTraceCourse() {
  return MakeTraceCourse("stage_interval", "stage", 1, kStageColumns, false);
}
TraceCourse OperatorTraceCourse() {
  return MakeTraceCourse("operator_interval", "stage, operator", 2, kOperatorColumns, true);
}
TraceCourse QueueTraceCourse() {
  return MakeTraceCourse("queue_interval", "queue", 1, kQueueColumns, false);
}
TraceCourse ResourceTraceCourse() {
  return MakeTraceCourse("resource_interval", "resource", 1, kResourceColumns, true);
}

IntervalQuery StepTimeQuery() {
  return {"step_time_interval", "start_ns, step_ns, below_ratio", "1", "start_ns, below_ratio"};
}

const TracedMetric* FindTraced(const std::string& metric) {
  for (const TracedMetric& traced : kTracedMetrics) {
    if (metric == traced.metric) return &traced;
  }
  return nullptr;
}

IntervalQuery MeasurementQuery() {
  std::string names;
  for (const TracedMetric& traced : kTracedMetrics) {
    names += fmt::format("{}'{}'", names.empty() ? "" : ", ", traced.metric);
  }
  return {"measurement_interval",
          "start_ns, duration_ns, metric, process_id, subject, cause, value",
          "operator IS NULL AND thread = '' AND metric IN (" + names + ")"};
}

void TraceCounter::Set(int64_t at_ns, double value, TraceWriter* writer) {
  if (!exists() || last_ == value || !std::isfinite(value)) return;
  last_ = value;
  writer->Counter(track_, at_ns, value);
}

CourseReader::CourseReader(const ExportRequest& request, TraceWriter* writer,
                           std::function<uint64_t()> new_track)
    : request_(request), writer_(writer), new_track_(std::move(new_track)) {
  ForEachWindow({"step_interval", "start_ns, duration_ns"},
                [&](int64_t start_ns, int64_t end_ns, const std::vector<SqlValue>&) {
                  windows_.push_back({start_ns, end_ns});
                });
}

void CourseReader::ForEachWindow(
    const IntervalQuery& query,
    const std::function<void(int64_t, int64_t, const std::vector<SqlValue>&)>& visit) {
  ForEachPortion(request_.store, query, request_.run_id, std::max<int64_t>(0, request_.since_ns),
                 request_.until_ns, [&](const SqlResult& rows) {
                   for (const auto& row : rows.rows) {
                     const auto start = WholeOf(row[0]), duration = WholeOf(row[1]);
                     if (!start || !duration || *duration <= 0) continue;
                     visit(*start, EndOfWindow(*start, *duration), row);
                   }
                 });
}

void CourseReader::Read(const TraceCourse& course, CourseEntities* entities) {
  ForEachWindow(course.query, [&](int64_t start_ns, int64_t end_ns,
                                  const std::vector<SqlValue>& row) {
    constexpr size_t kFirstKey = 2;
    std::vector<std::string> key;
    for (size_t k = 0; k < course.num_keys; ++k) key.push_back(TextOf(row[kFirstKey + k]));
    const auto found = entities->find(key);
    if (found == entities->end()) return;
    CourseEntity& entity = found->second;
    if (course.idle_is_absent) CatchUp(&entity, start_ns);
    entity.seen = true;
    bool unknown = false;
    for (size_t c = 0; c < course.columns.size(); ++c) {
      TraceCounter& counter = entity.counters[c];
      const auto value = NumberOf(row[kFirstKey + course.num_keys + c]);
      const double scale = course.columns[c].scale;
      if (value) {
        counter.Set(
            start_ns,
            scale == kAsStored ? *value : *value * scale / static_cast<double>(end_ns - start_ns),
            writer_);
      } else if (counter.exists()) {
        unknown = true;
        counter.Forget();
      }
    }
    MarkUnknown(&entity, unknown, start_ns, end_ns);
  });
  for (auto& [key, entity] : *entities) {
    if (course.idle_is_absent) Idle(&entity, entity.next_window, windows_.size());
    MarkUnknown(&entity, false, 0, 0);
  }
}

// Brings an entity to the window that begins at `start_ns`. In those it left out it did nothing.
void CourseReader::CatchUp(CourseEntity* entity, int64_t start_ns) {
  const auto window = std::lower_bound(windows_.begin(), windows_.end(), start_ns,
                                       [](const Window& w, int64_t ns) { return w.start_ns < ns; });
  const auto at = static_cast<size_t>(window - windows_.begin());
  Idle(entity, entity->next_window, at);
  entity->next_window = at + 1;
}

// It did nothing from window `from` on, up to but without window `to`.
void CourseReader::Idle(CourseEntity* entity, size_t from, size_t to) {
  if (!entity->seen || from >= to || from >= windows_.size()) return;
  for (TraceCounter& counter : entity->counters) counter.Set(windows_[from].start_ns, 0, writer_);
}

// A counter holds its last value, which is wrong where its value is not known: a slice says so.
void CourseReader::MarkUnknown(CourseEntity* entity, bool unknown, int64_t start_ns,
                               int64_t end_ns) {
  std::optional<int64_t>& open = entity->unknown_end_ns;
  if (open && (!unknown || start_ns - *open > kGapNs)) {
    writer_->End(entity->unknown_track, *open);
    open.reset();
  }
  if (!unknown) return;
  if (entity->unknown_track == 0) {
    entity->unknown_track = new_track_();
    writer_->Track(
        {entity->unknown_track, entity->group, 0, TraceTrack::Kind::kSlices, "not separated", ""});
  }
  if (!open) {
    const std::string why =
        "a counter above that has no value here is not known; it is shown with the one before";
    writer_->Begin(entity->unknown_track, start_ns, "not separated", {{"why", why}});
  }
  open = end_ns;
}

}  // namespace headrace::dashboards
