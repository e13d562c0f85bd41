// What the lanes of the overview draw: stages, queues, steps and marks over time.
#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "dashboards/pages/course.h"
#include "dashboards/pages/page_run.h"
#include "dashboards/pages/short_number.h"
#include "dashboards/sql_values.h"

namespace headrace::dashboards {
namespace {

using Json = nlohmann::ordered_json;

constexpr double kPixels = 600;  // windows where nothing else is asked for

Json Seconds(int64_t ns) { return std::round(static_cast<double>(ns) / 1e5) / 1e4; }

// Shares of the threads' time. Waits are booked when they end, so a window may hold more than its
// threads lived: its shares are then those of all that it holds.
Json StageSeries(const CourseLane& lane, const std::vector<StageCourse>& values) {
  Json busy = Json::array(), c = Json::array(), b = Json::array(), q = Json::array(),
       in = Json::array(), out = Json::array(), threads = Json::array();
  bool split = !values.empty();
  for (const StageCourse& value : values) {
    split = split && value.on_cpu_ns && value.blocked_ns && value.runnable_ns;
  }
  for (const StageCourse& value : values) {
    const double all =
        std::max(value.lifetime_ns, value.busy_ns + value.wait_in_ns + value.wait_out_ns);
    const auto share = [&](double ns) {
      return all > 0 ? Json(std::round(1000 * ns / all) / 1000) : Json(nullptr);
    };
    busy.push_back(share(value.busy_ns));
    in.push_back(share(value.wait_in_ns));
    out.push_back(share(value.wait_out_ns));
    threads.push_back(ShortNumber(value.parallelism));
    if (!split) continue;
    c.push_back(share(*value.on_cpu_ns));
    b.push_back(share(*value.blocked_ns));
    q.push_back(share(*value.runnable_ns));
  }
  Json series = {{"name", lane.name}, {"busy", std::move(busy)}};
  for (auto& [key, shares] : {std::pair("c", &c), std::pair("b", &b), std::pair("q", &q)}) {
    if (split) {
      series[key] = std::move(*shares);
    } else {
      series[key] = nullptr;
    }
  }
  series["wi"] = std::move(in);
  series["wo"] = std::move(out);
  series["threads"] = std::move(threads);
  return series;
}

Json QueueSeries(const CourseLane& lane, const std::vector<QueueCourse>& values) {
  Json fill = Json::array(), full = Json::array(), empty = Json::array();
  for (const QueueCourse& value : values) {
    const auto mean = [&](double sum) {
      return value.weight_ns > 0 ? Json(std::round(1000 * sum / value.weight_ns) / 1000)
                                 : Json(nullptr);
    };
    fill.push_back(mean(value.fill));
    full.push_back(mean(value.full));
    empty.push_back(mean(value.empty));
  }
  return {{"name", lane.name},         {"producer", lane.producer}, {"consumer", lane.consumer},
          {"capacity", lane.capacity}, {"fill", std::move(fill)},   {"full", std::move(full)},
          {"empty", std::move(empty)}};
}

Json StepSeries(const std::vector<CourseWindow>& windows) {
  Json count = Json::array(), rows = Json::array(), wait = Json::array(), compute = Json::array(),
       p50 = Json::array(), p99 = Json::array();
  for (const CourseWindow& window : windows) {
    count.push_back(window.steps);
    rows.push_back(window.rows);
    wait.push_back(Seconds(window.wait_ns));
    compute.push_back(Seconds(window.compute_ns));
    p50.push_back(ShortNumber(StepQuantile(window.step_times, 0.5)));
    p99.push_back(ShortNumber(StepQuantile(window.step_times, 0.99)));
  }
  return {{"count", std::move(count)},     {"rows", std::move(rows)}, {"wait", std::move(wait)},
          {"compute", std::move(compute)}, {"p50", std::move(p50)},   {"p99", std::move(p99)}};
}

// What happened at an instant: decisions of a tuner, what made the flight recorder keep detail, and
// what somebody marked.
Json Marks(const PageRun& page) {
  Json marks = Json::array();
  const auto add = [&](const collectors::SqlResult& result) {
    for (const auto& row : result.rows) {
      marks.push_back({{"at", Seconds(IntegerOf(row[0]))}, {"text", TextOf(row[1])}});
    }
  };
  add(page.store().Query(
      "SELECT COALESCE(applied_ns, at_ns), action || ': ' || reason FROM decision_summary WHERE "
      "run_id = ?1 ORDER BY at_ns LIMIT 200",
      {page.id()}));
  add(page.store().Query(
      "SELECT start_ns, 'full detail: ' || reason FROM detail_range WHERE run_id = ?1 ORDER BY "
      "start_ns LIMIT 200",
      {page.id()}));
  add(page.store().Query(
      "SELECT at_ns, text FROM run_mark WHERE run_id = ?1 ORDER BY at_ns LIMIT 200", {page.id()}));
  return marks;
}

std::string CourseAnswer(const PageRun& page, const PageQuery& query) {
  const double full_s = RecordedSeconds(page.store(), page.id());
  const CourseRange range =
      RangeOf(query.Number("from", 0), query.Number("to", 0), query.Number("px", kPixels), full_s);
  const RunCourse course = ReadCourse(page.store(), page.id(), range);
  Json starts = Json::array(), lengths = Json::array(), stages = Json::array(),
       queues = Json::array();
  for (const CourseWindow& window : course.windows) {
    starts.push_back(Seconds(window.start_ns));
    lengths.push_back(Seconds(window.duration_ns));
  }
  for (size_t i = 0; i < course.stages.size(); ++i) {
    stages.push_back(StageSeries(course.stages[i], course.stage_values[i]));
  }
  for (size_t i = 0; i < course.queues.size(); ++i) {
    queues.push_back(QueueSeries(course.queues[i], course.queue_values[i]));
  }
  const Json root = {{"schema", "headrace.course/1"},
                     {"full", {0, course.full_s}},
                     {"from", range.from_s},
                     {"to", range.to_s},
                     {"t", std::move(starts)},
                     {"d", std::move(lengths)},
                     {"stages", std::move(stages)},
                     {"queues", std::move(queues)},
                     {"steps", StepSeries(course.windows)},
                     {"phases", Json::array()},
                     {"marks", Marks(page)}};
  return root.dump(-1, ' ', false, Json::error_handler_t::replace);
}

// Threads of each stage, the mean over the run.
std::map<std::string, double> ThreadsByStage(const PageRun& page) {
  std::map<std::string, double> threads;
  for (const auto& row :
       page.store()
           .Query("SELECT stage, parallelism_count FROM stage_summary WHERE run_id = ?1",
                  {page.id()})
           .rows) {
    threads[TextOf(row[0])] = RealOf(row[1]);
  }
  return threads;
}

// Busy shares of the operators over time.
std::string OperatorCourseAnswer(const PageRun& page, const PageQuery& query) {
  const double full_s = RecordedSeconds(page.store(), page.id());
  const CourseRange range =
      RangeOf(query.Number("from", 0), query.Number("to", 0), query.Number("px", 120), full_s);
  const int64_t width_ns = NsOf(std::max(range.width_s, 0.001));
  const collectors::SqlValue from = NsOf(range.from_s), to = NsOf(range.to_s);
  const collectors::SqlResult lengths = page.store().Query(
      "SELECT start_ns / ?4, MIN(start_ns), SUM(duration_ns) FROM step_interval WHERE run_id = ?1 "
      "AND start_ns >= ?2 AND start_ns < ?3 GROUP BY 1 ORDER BY 1",
      {page.id(), from, to, width_ns});
  Json starts = Json::array(), durations = Json::array();
  std::map<int64_t, size_t> index;
  std::vector<double> length_ns;
  for (const auto& row : lengths.rows) {
    index.emplace(IntegerOf(row[0]), length_ns.size());
    length_ns.push_back(RealOf(row[2]));
    starts.push_back(Seconds(IntegerOf(row[1])));
    durations.push_back(Seconds(IntegerOf(row[2])));
  }
  // Added up by number first: there may be a million rows, and names are looked up for each.
  const collectors::SqlResult rows = page.store().Query(
      "SELECT o.stage, o.operator, d.slice, d.busy_ns FROM (SELECT operator_id, start_ns / ?4 AS "
      "slice, SUM(busy_ns) AS busy_ns FROM operator_delta WHERE run_id = ?1 AND start_ns >= ?2 AND "
      "start_ns < ?3 GROUP BY operator_id, 2) AS d JOIN operator_summary AS o ON o.run_id = ?1 AND "
      "o.operator_id = d.operator_id",
      {page.id(), from, to, width_ns});
  const std::map<std::string, double> threads = ThreadsByStage(page);
  std::map<std::pair<std::string, std::string>, std::vector<double>> shares;
  for (const auto& row : rows.rows) {
    const auto at = index.find(IntegerOf(row[2]));
    if (at == index.end()) continue;
    auto& series = shares[{TextOf(row[0]), TextOf(row[1])}];
    series.resize(length_ns.size());
    const auto found = threads.find(TextOf(row[0]));
    const double all =
        length_ns[at->second] * std::max(1.0, found == threads.end() ? 0 : found->second);
    series[at->second] = all > 0 ? RealOf(row[3]) / all : 0;
  }
  Json operators = Json::array();
  for (const auto& [key, series] : shares) {
    Json busy = Json::array();
    for (const double share : series) busy.push_back(std::round(1000 * share) / 1000);
    operators.push_back({{"name", key.second}, {"stage", key.first}, {"busy", std::move(busy)}});
  }
  const Json root = {{"schema", "headrace.operator_course/1"},
                     {"t", std::move(starts)},
                     {"d", std::move(durations)},
                     {"operators", std::move(operators)}};
  return root.dump(-1, ' ', false, Json::error_handler_t::replace);
}

HR_PAGE_ANSWER("course", {.make = CourseAnswer, .in_file = true});
HR_PAGE_ANSWER("operators/course", {.make = OperatorCourseAnswer, .in_file = true});

}  // namespace
}  // namespace headrace::dashboards
