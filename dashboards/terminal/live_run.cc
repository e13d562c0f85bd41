#include "dashboards/terminal/live_run.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <utility>

#include "base/clock.h"
#include "base/error.h"

namespace headrace::dashboards {
namespace {

using analysis::OperatorRow;
using analysis::QueueRow;
using analysis::StageRow;
using analysis::WindowRow;
using collectors::SqlResult;
using collectors::SqlValue;

// A recording stores about once a second. Without news for this long its store is opened again.
constexpr int64_t kSilentNs = 3'000'000'000;

// One row of a result, by column name.
class SqlRow {
 public:
  SqlRow(const SqlResult& result, size_t row) : result_(result), row_(result.rows[row]) {}

  std::optional<int64_t> Integer(std::string_view name) const {
    const SqlValue& value = row_[result_.Column(name)];
    if (const auto* integer = std::get_if<int64_t>(&value)) return *integer;
    if (const auto* real = std::get_if<double>(&value)) return static_cast<int64_t>(*real);
    return std::nullopt;
  }
  int64_t Number(std::string_view name) const { return Integer(name).value_or(0); }
  std::optional<double> Real(std::string_view name) const {
    const SqlValue& value = row_[result_.Column(name)];
    if (const auto* real = std::get_if<double>(&value)) return *real;
    if (const auto* integer = std::get_if<int64_t>(&value)) return static_cast<double>(*integer);
    return std::nullopt;
  }
  std::string Text(std::string_view name) const {
    const auto* text = std::get_if<std::string>(&row_[result_.Column(name)]);
    return text ? *text : std::string();
  }

 private:
  const SqlResult& result_;
  const std::vector<SqlValue>& row_;
};

template <typename Use>
void EachRow(const SqlResult& result, const Use& use) {
  for (size_t i = 0; i < result.rows.size(); ++i) use(SqlRow(result, i));
}

void ReadTimes(const SqlRow& row, analysis::OperatorCounters* op) {
  op->completions_count = row.Number("completions_count");
  op->rows_count = row.Number("rows_count");
  op->bytes_in_bytes = row.Number("bytes_in_bytes");
  op->bytes_out_bytes = row.Number("bytes_out_bytes");
  op->busy_ns = row.Number("busy_ns");
  op->on_cpu_ns = row.Integer("on_cpu_ns");
  op->blocked_ns = row.Integer("blocked_ns");
  op->runnable_ns = row.Integer("runnable_ns");
  op->wait_in_ns = row.Number("wait_in_ns");
  op->wait_out_ns = row.Number("wait_out_ns");
}

analysis::StepCounters StepsOf(const SqlRow& row) {
  return {row.Number("steps_count"), row.Number("rows_count"), row.Number("wait_ns"),
          row.Number("compute_ns")};
}

// The window that begins at that time, which is made if there is none: an entity without a row in
// it did nothing, and what was never measured of it stays unknown.
WindowRow& WindowAt(const SqlRow& row, const analysis::RunView& view,
                    std::map<int64_t, WindowRow>* windows) {
  const auto [it, added] = windows->try_emplace(row.Number("start_ns"));
  WindowRow& window = it->second;
  if (!added) return window;
  window.start_ns = it->first;
  window.duration_ns = row.Number("duration_ns");
  window.operators.resize(view.operators.size());
  window.stages.resize(view.stages.size());
  window.queues.resize(view.queues.size());
  const auto zero_if_known = [](const analysis::Count& known) {
    return known ? analysis::Count(0) : std::nullopt;
  };
  for (size_t i = 0; i < view.operators.size(); ++i) {
    window.operators[i].on_cpu_ns = zero_if_known(view.operators[i].on_cpu_ns);
    window.operators[i].blocked_ns = zero_if_known(view.operators[i].blocked_ns);
    window.operators[i].runnable_ns = zero_if_known(view.operators[i].runnable_ns);
  }
  for (size_t i = 0; i < view.stages.size(); ++i) {
    window.stages[i].on_cpu_ns = zero_if_known(view.stages[i].on_cpu_ns);
    window.stages[i].runnable_ns = zero_if_known(view.stages[i].runnable_ns);
  }
  return window;
}

template <typename Row>
std::optional<size_t> PlaceOf(const std::vector<Row>& rows, const std::string& name) {
  for (size_t i = 0; i < rows.size(); ++i) {
    if (rows[i].name == name) return i;
  }
  return std::nullopt;
}

std::optional<size_t> OperatorPlace(const std::vector<OperatorRow>& operators,
                                    const std::string& name, const std::string& stage) {
  for (size_t i = 0; i < operators.size(); ++i) {
    if (operators[i].name == name && operators[i].stage == stage) return i;
  }
  return std::nullopt;
}

template <typename Row>
bool SamePlaces(const std::vector<Row>& a, const std::vector<Row>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](const Row& x, const Row& y) { return x.name == y.name; });
}

template <typename Item>
void ForgetBefore(int64_t ns, std::vector<Item>* items) {
  const auto old = std::find_if(items->begin(), items->end(), [&](const Item& item) {
    return item.start_ns + item.duration_ns > ns;
  });
  items->erase(items->begin(), old);
}

}  // namespace

const std::vector<FigurePoint>& LiveFigures::Points(MachineFigure which) const {
  static const std::vector<FigurePoint> none;
  const auto found = courses.find(which);
  return found == courses.end() ? none : found->second;
}

ChosenRun ChooseLiveRun(const std::string& database, const std::string& run) {
  collectors::ReadStore store(database);
  if (run.empty()) {
    const SqlResult recording = store.Query(
        "SELECT MAX(run_id) AS id, COUNT(*) AS runs FROM run_summary WHERE state = 'recording'");
    const SqlRow row(recording, 0);
    const std::optional<int64_t> id = row.Integer("id");
    if (!id) return {store.FindRun("latest"), "No run is being recorded: this is the latest."};
    const int64_t runs = row.Number("runs");
    if (runs == 1) return {*id, ""};
    return {*id, fmt::format("{} runs are being recorded: this is the newest.", runs)};
  }
  // An id before a name, as everywhere that reports a run.
  if (run.size() < 18 && run.find_first_not_of("0123456789") == run.npos) {
    const SqlResult by_id = store.Query("SELECT run_id FROM run_summary WHERE run_id = ?1",
                                        {int64_t{std::strtoll(run.c_str(), nullptr, 10)}});
    if (!by_id.rows.empty()) return {SqlRow(by_id, 0).Number("run_id"), ""};
  }
  return {store.FindRun(run), ""};
}

LiveRun::LiveRun(std::string database, int64_t run_id)
    : database_(std::move(database)), run_id_(run_id), store_(database_) {
  ReadRow();
  changed_at_ns_ = MonotonicNs();
  // A store that was recorded long ago is read from its end as well.
  read_ns_ = HistoryBegin();
  Read();
}

int64_t LiveRun::HistoryBegin() const {
  return std::max<int64_t>(0, figures_.run.run.duration_ns - kHistoryNs) - 1;
}

bool LiveRun::Read() {
  const int64_t now = MonotonicNs();
  if (figures_.recording() && now - changed_at_ns_ > kSilentNs) {
    collectors::ReadStore fresh(database_);  // or throws, and is tried again at the next look
    store_.emplace(std::move(fresh));
    changed_at_ns_ = now;
  }
  const std::string state = figures_.run.run.state;
  ReadRow();
  const int64_t to_ns = StoredNs();
  if (to_ns <= read_ns_ + 1 && state == figures_.run.run.state) return false;
  ReadEntities();
  if (to_ns > read_ns_ + 1) {
    ReadWindows(read_ns_, to_ns);
    ReadCourses(read_ns_, to_ns);
    read_ns_ = to_ns - 1;
    changed_at_ns_ = now;
    Forget();
  }
  return true;
}

void LiveRun::ReadRow() {
  const SqlResult result = store_->Query(
      "SELECT name, state, program, pid, duration_ns, accounting_level, cores_count, "
      "started_realtime_ns FROM run_summary WHERE run_id = ?1",
      {run_id_});
  if (result.rows.empty()) {
    throw Error(ExitCode::kBadData, "the run is no longer there", database_,
                "'headrace runs' lists those that are");
  }
  const SqlRow row(result, 0);
  analysis::RunRow& run = figures_.run.run;
  run.run_id = run_id_;
  run.name = row.Text("name");
  run.state = row.Text("state");
  run.program = row.Text("program");
  run.pid = row.Number("pid");
  run.duration_ns = row.Number("duration_ns");
  run.accounting_level = static_cast<int>(row.Number("accounting_level"));
  run.cores_count = row.Real("cores_count");
  run.started_realtime_ns = row.Number("started_realtime_ns");
}

// End of the newest interval, of which all is written at once; up to there nothing is missing. The
// run itself may be longer: a flight recorder stores its course later.
int64_t LiveRun::StoredNs() {
  const SqlResult newest = store_->Query(
      "SELECT start_ns + duration_ns AS end_ns FROM step_interval WHERE run_id = ?1 "
      "ORDER BY start_ns DESC LIMIT 1",
      {run_id_});
  return newest.rows.empty() ? 0 : SqlRow(newest, 0).Number("end_ns");
}

void LiveRun::ReadEntities() {
  const auto query = [&](const char* sql) { return store_->Query(sql, {run_id_}); };
  std::vector<StageRow> stages;
  EachRow(query("SELECT * FROM stage_summary WHERE run_id = ?1 ORDER BY stage_index"),
          [&](const SqlRow& row) {
            StageRow& stage = stages.emplace_back();
            stage.name = row.Text("stage");
            stage.stage_index = row.Number("stage_index");
            stage.parallelism_count = row.Real("parallelism_count").value_or(0);
            stage.last_parallelism_count = row.Number("last_parallelism_count");
            stage.lifetime_ns = row.Number("lifetime_ns");
            stage.on_cpu_ns = row.Integer("on_cpu_ns");
            stage.runnable_ns = row.Integer("runnable_ns");
          });
  std::vector<OperatorRow> operators;
  EachRow(query("SELECT * FROM operator_summary WHERE run_id = ?1 "
                "ORDER BY stage_index, position_index"),
          [&](const SqlRow& row) {
            OperatorRow& op = operators.emplace_back();
            ReadTimes(row, &op);
            op.name = row.Text("operator");
            op.kind = row.Text("kind");
            op.stage = row.Text("stage");
            op.stage_index = row.Number("stage_index");
            op.position_index = row.Number("position_index");
          });
  std::vector<QueueRow> queues;
  EachRow(query("SELECT * FROM queue_summary WHERE run_id = ?1"), [&](const SqlRow& row) {
    QueueRow& queue = queues.emplace_back();
    queue.name = row.Text("queue");
    queue.producer_stage = row.Text("producer_stage");
    queue.consumer_stage = row.Text("consumer_stage");
    queue.capacity_count = row.Number("capacity_count");
  });
  EachRow(query("SELECT steps_count, rows_count, wait_ns, compute_ns FROM step_summary WHERE "
                "run_id = ?1"),
          [&](const SqlRow& row) {
            static_cast<analysis::StepCounters&>(figures_.run.steps) = StepsOf(row);
          });
  // Windows are read against the entities of their time: where those change, they are read again.
  const bool moved = !SamePlaces(figures_.run.stages, stages) ||
                     !SamePlaces(figures_.run.operators, operators) ||
                     !SamePlaces(figures_.run.queues, queues);
  figures_.run.stages = std::move(stages);
  figures_.run.operators = std::move(operators);
  figures_.run.queues = std::move(queues);
  if (!moved) return;
  figures_.run.windows.clear();
  figures_.courses.clear();
  read_ns_ = HistoryBegin();
}

void LiveRun::ReadWindows(int64_t from_ns, int64_t to_ns) {
  std::map<int64_t, WindowRow> windows;
  const auto each = [&](const char* view, const auto& use) {
    EachRow(store_->Query(std::string("SELECT * FROM ") + view +
                              " WHERE run_id = ?1 AND start_ns > ?2 AND start_ns < ?3",
                          {run_id_, from_ns, to_ns}),
            use);
  };
  each("step_interval",
       [&](const SqlRow& row) { WindowAt(row, figures_.run, &windows).steps = StepsOf(row); });
  each("stage_interval", [&](const SqlRow& row) {
    const auto place = PlaceOf(figures_.run.stages, row.Text("stage"));
    if (!place) return;
    analysis::StageCounters& stage = WindowAt(row, figures_.run, &windows).stages[*place];
    stage.parallelism_count = row.Real("parallelism_count").value_or(0);
    stage.lifetime_ns = row.Number("lifetime_ns");
    stage.on_cpu_ns = row.Integer("on_cpu_ns");
    stage.runnable_ns = row.Integer("runnable_ns");
  });
  each("operator_interval", [&](const SqlRow& row) {
    const auto place =
        OperatorPlace(figures_.run.operators, row.Text("operator"), row.Text("stage"));
    if (place) ReadTimes(row, &WindowAt(row, figures_.run, &windows).operators[*place]);
  });
  each("queue_interval", [&](const SqlRow& row) {
    const auto place = PlaceOf(figures_.run.queues, row.Text("queue"));
    if (!place) return;
    analysis::QueueCounters& queue = WindowAt(row, figures_.run, &windows).queues[*place];
    queue.mean_occupancy_ratio = row.Real("mean_occupancy_ratio");
    queue.full_ratio = row.Real("full_ratio");
    queue.empty_ratio = row.Real("empty_ratio");
  });
  for (auto& [start, window] : windows) figures_.run.windows.push_back(std::move(window));
}

// By their ends: what a probe that is read seldom says begins before the last look.
void LiveRun::ReadCourses(int64_t from_ns, int64_t to_ns) {
  constexpr int64_t kLongestNs = 15'000'000'000;  // probes are read every 10 s at least
  const SqlResult result = store_->Query(
      "SELECT start_ns, duration_ns, metric, cause, value FROM measurement_interval "
      "WHERE run_id = ?1 AND start_ns > ?4 AND start_ns < ?3 AND start_ns + duration_ns > ?2 + 1 "
      "AND start_ns + duration_ns <= ?3 AND process_id IS NULL "
      "AND operator IS NULL AND (metric IN ('process_cpu_ns', 'process_rss_bytes', "
      "'process_read_bytes') OR metric = 'pressure_ns' AND subject = '' AND cause IN "
      "('cpu some', 'io some') OR metric = 'gpu_use_ratio' AND cause = 'compute') "
      "ORDER BY start_ns",
      {run_id_, from_ns, to_ns, std::max<int64_t>(0, from_ns - kLongestNs) - 1});
  EachRow(result, [&](const SqlRow& row) {
    const std::optional<double> value = row.Real("value");
    if (!value) return;
    const std::string metric = row.Text("metric");
    if (metric == "process_rss_bytes") {
      figures_.rss_bytes = value;
      return;
    }
    const MachineFigure course = metric == "process_cpu_ns"        ? MachineFigure::kProcessCpu
                                 : metric == "process_read_bytes"  ? MachineFigure::kDeviceRead
                                 : metric == "gpu_use_ratio"       ? MachineFigure::kAccelerator
                                 : row.Text("cause") == "cpu some" ? MachineFigure::kCpuPressure
                                                                   : MachineFigure::kIoPressure;
    const int64_t duration_ns = row.Number("duration_ns");
    // It is read apart from the windows, so a short one may be given more than its own time.
    const bool of_time = metric == "pressure_ns";
    figures_.courses[course].push_back(
        {row.Number("start_ns"), duration_ns,
         of_time ? std::min(*value, static_cast<double>(duration_ns)) : *value});
  });
}

void LiveRun::Forget() {
  const int64_t before_ns = figures_.run.run.duration_ns - kHistoryNs;
  ForgetBefore(before_ns, &figures_.run.windows);
  for (auto& [course, points] : figures_.courses) ForgetBefore(before_ns, &points);
}

}  // namespace headrace::dashboards
