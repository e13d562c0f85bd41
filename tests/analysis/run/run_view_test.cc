// Reading a database: a hand-made one whose tables bear the names of the documented views.
#include "analysis/run/run_view.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sqlite3.h>
#include <unistd.h>

#include <fstream>
#include <map>

#include "analysis/run/read_run.h"
#include "base/error.h"
#include "collectors/store/store.h"

namespace headrace::analysis {
namespace {

constexpr const char* kHandMade = R"sql(
CREATE TABLE run_summary(run_id, name, state, duration_ns, accounting_level, cores_count, memory_bytes);
INSERT INTO run_summary VALUES (1, 'first', 'complete', 4000000000, 2, 2.0, NULL),
                               (2, 'second', 'interrupted', 3000000000, 1, NULL, 1024);
CREATE TABLE stage_summary(run_id, stage, stage_index, parallelism_count, last_parallelism_count,
  max_parallelism_count, lifetime_ns, on_cpu_ns, runnable_ns, unattributed_ns);
INSERT INTO stage_summary VALUES (1, 'decode', 1, 1.0, 1, 0, 4000000000, NULL, NULL, NULL),
                                 (1, 'fetch', 0, 1.5, 2, 0, 8000000000, 700, 5, 0);
CREATE TABLE operator_summary(run_id, operator, kind, stage, stage_index, position_index,
  completions_count, rows_count, bytes_in_bytes, bytes_out_bytes, busy_ns, on_cpu_ns, blocked_ns,
  runnable_ns, lock_wait_ns, wait_in_ns, wait_out_ns, source);
INSERT INTO operator_summary VALUES
  (1, 'read', 'fetch', 'fetch', 0, 0, 10, 640, 0, 4096, 900, 700, NULL, NULL, 0, 0, 100, 'thread_clock'),
  (1, 'decode', 'decode', 'decode', 1, 0, 9, 576, 4096, 8192, 800, 600, NULL, NULL, 0, 50, 0, 'thread_clock');
CREATE TABLE queue_summary(run_id, queue, producer_stage, consumer_stage, capacity_count,
  mean_occupancy_ratio, full_ratio, empty_ratio, puts_count, gets_count);
INSERT INTO queue_summary VALUES (1, 'fetch.out', 'fetch', 'decode', 4, 0.5, NULL, 0.25, 10, 9);
CREATE TABLE resource_summary(run_id, resource, kind, servers_count, acquisitions_count, wait_ns,
  hold_ns, moved_bytes);
CREATE TABLE step_summary(run_id, steps_count, rows_count, wait_ns, compute_ns, wall_ns, step_p50_ns,
  step_p99_ns);
INSERT INTO step_summary VALUES (1, 9, 576, 100, 900, 4000000000, 400, NULL);
CREATE TABLE host_summary(run_id, metric, unit, mean_value, minimum_value, maximum_value, last_value,
  source);
CREATE TABLE probe_status(run_id, probe, state, reason, fix);
CREATE TABLE loss_summary(run_id, what, lost_count, total_count);
CREATE TABLE step_interval(run_id, start_ns, duration_ns, steps_count, rows_count, wait_ns, compute_ns);
INSERT INTO step_interval VALUES (1, 0, 250, 4, 256, 10, 90), (1, 250, 250, 5, 320, 10, 90);
CREATE TABLE operator_interval(run_id, start_ns, duration_ns, operator, stage, completions_count,
  rows_count, bytes_in_bytes, bytes_out_bytes, busy_ns, on_cpu_ns, blocked_ns, runnable_ns,
  lock_wait_ns, wait_in_ns, wait_out_ns);
INSERT INTO operator_interval VALUES
  (1, 250, 250, 'decode', 'decode', 5, 320, 0, 0, 80, 60, NULL, NULL, 0, 0, 0);
CREATE TABLE stage_interval(run_id, start_ns, duration_ns, stage, parallelism_count, lifetime_ns,
  on_cpu_ns, runnable_ns, unattributed_ns);
CREATE TABLE queue_interval(run_id, start_ns, duration_ns, queue, mean_occupancy_ratio, full_ratio,
  empty_ratio, puts_count, gets_count);
CREATE TABLE resource_interval(run_id, start_ns, duration_ns, resource, acquisitions_count, wait_ns,
  hold_ns, moved_bytes);
)sql";

class LoadRunTest : public testing::Test {
 protected:
  void SetUp() override {
    path_ = testing::TempDir() + "run_view_" + std::to_string(getpid()) + ".db";
    unlink(path_.c_str());
  }
  void TearDown() override { unlink(path_.c_str()); }
  void Make(const char* sql) {
    sqlite3* database = nullptr;
    ASSERT_EQ(sqlite3_open(path_.c_str(), &database), SQLITE_OK);
    ASSERT_EQ(sqlite3_exec(database, sql, nullptr, nullptr, nullptr), SQLITE_OK)
        << sqlite3_errmsg(database);
    sqlite3_close(database);
  }
  ExitCode CodeOf(const std::string& run) {
    try {
      LoadRun(path_, run);
    } catch (const Error& error) {
      return error.code();
    }
    return ExitCode::kOk;
  }
  std::string path_;
};

// Stored intervals need not end where slices do.
TEST_F(LoadRunTest, AnIntervalAcrossSlicesIsSharedOutToThem) {
  collectors::RunStore store(path_);
  collectors::RunInfo info;
  info.name = "course";
  const int64_t id = store.BeginRun(info);
  collectors::MeasurementBatch batch;
  batch.metrics.push_back({"on_cpu_ns", "ns", "counter", "ebpf", "", "h"});
  collectors::ProcessRow process;
  process.id = 0;
  process.pid = 7;
  batch.processes.push_back(process);
  collectors::MeasurementRow row;
  row.metric = "on_cpu_ns";
  row.source = "ebpf";
  row.process_id = 0;
  row.thread = "python";
  batch.definitions.push_back(row);
  batch.totals.push_back({0, 2'000'000'000, 440, 440, 440, 440, {}});
  batch.intervals = {{0, 0, 500'000'000, 100},
                     {0, 500'000'000, 1'000'000'000, 300},
                     {0, 1'500'000'000, 500'000'000, 40}};
  collectors::IntervalSample sample;
  sample.duration_ns = 2'000'000'000;
  store.Append(id, {sample}, batch);
  store.FinishRun(id, collectors::RunState::kComplete);
  const RunView view = LoadRun(path_, "course");
  // What is usual of them is 750 ms, weighted by their length: up to the next half second.
  EXPECT_EQ(view.course_slice_ns, 1'000'000'000);
  std::map<int64_t, double> on_cpu;
  for (const CourseRow& row : view.course) {
    if (row.metric == "on_cpu_ns") on_cpu[row.slice] += row.value;
  }
  EXPECT_THAT(on_cpu, testing::ElementsAre(testing::Pair(0, testing::DoubleEq(250)),
                                           testing::Pair(1, testing::DoubleEq(190))));
}

// What a thread waited in operators and outside them is one; rows of operators name no thread.
TEST_F(LoadRunTest, ThreadsWaitsInOperatorsAreOfTheThreadsCourse) {
  collectors::RunStore store(path_);
  collectors::RunInfo info;
  info.name = "hook";
  const int64_t id = store.BeginRun(info);
  collectors::MeasurementBatch batch;
  collectors::ProcessRow process;
  process.id = 0;
  process.pid = 7;
  batch.processes.push_back(process);
  const auto add = [&](const char* metric, const char* thread, double value) {
    batch.metrics.push_back({metric, "ns", "counter", "ebpf", "", "h"});
    collectors::MeasurementRow row;
    row.id = static_cast<int64_t>(batch.definitions.size());
    row.metric = metric;
    row.source = "ebpf";
    row.process_id = 0;
    row.thread = thread;
    row.cause = "lock";
    batch.totals.push_back({row.id, 1'000'000'000, value, value, value, value, {}});
    batch.intervals.push_back({row.id, 0, 1'000'000'000, value});
    batch.definitions.push_back(row);
  };
  add("off_cpu_ns", "python (main)", 100);
  add("off_cpu_inside_ns", "python (main)", 30);
  add("off_cpu_wait_ns", "", 40);
  collectors::IntervalSample sample;
  sample.duration_ns = 1'000'000'000;
  store.Append(id, {sample}, batch);
  store.FinishRun(id, collectors::RunState::kComplete);
  std::map<std::pair<std::string, std::string>, double> course;
  for (const CourseRow& row : LoadRun(path_, "hook").course) {
    course[{row.metric, row.thread}] += row.value;
  }
  EXPECT_THAT(course, testing::ElementsAre(testing::Pair(
                          testing::Pair("off_cpu_ns", "python (main)"), testing::DoubleEq(130))));
}

TEST_F(LoadRunTest, ReadsRowsInPipelineOrderAndKeepsNullApartFromZero) {
  Make(kHandMade);
  const RunView run = LoadRun(path_, "first");
  ASSERT_EQ(run.stages.size(), 2u);
  EXPECT_EQ(run.stages[0].name, "fetch");
  EXPECT_EQ(run.stages[0].on_cpu_ns, 700);
  EXPECT_FALSE(run.stages[1].on_cpu_ns.has_value());
  ASSERT_EQ(run.operators.size(), 2u);
  EXPECT_EQ(run.operators[1].name, "decode");
  EXPECT_FALSE(run.operators[1].blocked_ns.has_value());
  EXPECT_FALSE(run.queues[0].full_ratio.has_value());
  EXPECT_EQ(run.steps.step_p50_ns, 400);
  ASSERT_EQ(run.windows.size(), 2u);
  EXPECT_EQ(run.windows[1].operators[1].completions_count, 5);
  // An operator without a row in an interval did nothing there; that was measured.
  EXPECT_EQ(run.windows[0].operators[1].on_cpu_ns, 0);
  EXPECT_FALSE(run.windows[0].operators[1].blocked_ns.has_value());
}

TEST_F(LoadRunTest, TheCeilingIsOfTheSameMachineAndItsLatestCalibration) {
  Make(kHandMade);
  EXPECT_FALSE(LoadRun(path_, "first").memory_ceiling_bytes_per_s);
  Make(R"sql(
    ALTER TABLE run_summary ADD hostname;
    ALTER TABLE run_summary ADD cpu_model;
    UPDATE run_summary SET hostname = 'here', cpu_model = 'cpu' WHERE run_id = 1;
    UPDATE run_summary SET hostname = 'elsewhere', cpu_model = 'cpu' WHERE run_id = 2;
    CREATE TABLE calibration_summary(calibration_id, hostname, cpu_model, metric, value,
                                     folder DEFAULT '', size_bytes, depth_count);
    INSERT INTO calibration_summary(calibration_id, hostname, cpu_model, metric, value) VALUES
      (1, 'here', 'cpu', 'memory_read_bytes_per_s', 90), (2, 'here', 'cpu', 'other', 99),
      (2, 'here', 'cpu', 'memory_read_bytes_per_s', 40),
      (2, 'here', 'cpu', 'memory_read_bytes_per_s', 70),
      (3, 'here', 'other cpu', 'memory_read_bytes_per_s', 80);
    INSERT INTO calibration_summary VALUES
      (1, 'here', 'cpu', 'storage_read_bytes_per_s', 5e6, '/data', 4096, 1),
      (4, 'here', 'cpu', 'storage_read_bytes_per_s', 8e6, '/data', 4096, 1),
      (4, 'here', 'cpu', 'storage_read_bytes_per_s', 9e8, '/data', 1048576, 8),
      (5, 'elsewhere', 'cpu', 'storage_read_bytes_per_s', 7e6, '/data', 4096, 1);)sql");
  const RunView first = LoadRun(path_, "first");
  EXPECT_EQ(first.memory_ceiling_bytes_per_s, 70);
  EXPECT_FALSE(LoadRun(path_, "second").memory_ceiling_bytes_per_s);
  ASSERT_EQ(first.storage_points.size(), 2u);
  EXPECT_EQ(first.storage_points[0].bytes_per_s, 8e6);
  EXPECT_EQ(first.storage_points[1].depth, 8);
  EXPECT_EQ(first.storage_points[1].folder, "/data");
}

TEST_F(LoadRunTest, LoadsAreOfRunsThatDoTheSameWork) {
  std::string sql = R"sql(
CREATE TABLE run_summary(run_id, name, state, duration_ns, accounting_level, level_asked, command, settings_text, cores_count,
  pipeline_text, hostname, table_text, kind, cold, pipeline_path DEFAULT 'p.toml',
  cpu_model DEFAULT 'c', headrace_version DEFAULT 'v', started_realtime_ns DEFAULT 0);
INSERT INTO run_summary(run_id, name, state, duration_ns, accounting_level, command, settings_text,
  pipeline_text, hostname, table_text, kind, cold) VALUES
  (1, 'a', 'complete', 4000000000, 3, 'hr run p.toml', 'a.parallelism=1', 'p', 'h', 't', 'pipeline', 0),
  (2, 'b', 'complete', 2000000000, 3, 'hr run p.toml', 'a.parallelism=4
b.queue=8
b.prefetch=2', 'p', 'h', 't', 'pipeline', 0),
  (3, 'other rows', 'complete', 2000000000, 3, 'hr run p.toml', 'batch.rows=9', 'p', 'h', 't', 'pipeline', 0),
  (4, 'other text', 'complete', 2000000000, 3, 'hr run p.toml', '', 'q', 'h', 't', 'pipeline', 0),
  (5, 'other host', 'complete', 2000000000, 3, 'hr run p.toml', '', 'p', 'i', 't', 'pipeline', 0),
  (6, 'short', 'complete', 200000000, 3, 'hr run p.toml', '', 'p', 'h', 't', 'pipeline', 0),
  (7, 'no clock', 'complete', 2000000000, 3, 'hr run p.toml', '', 'p', 'h', 't', 'pipeline', 0),
  (8, 'other table', 'complete', 2000000000, 3, 'hr run p.toml', '', 'p', 'h', 'u', 'pipeline', 0),
  (9, 'ceiling', 'complete', 2000000000, 3, 'hr run p.toml --ceiling', '', 'p', 'h', 't', 'ceiling', 0),
  (10, 'cold', 'complete', 2000000000, 3, 'hr run p.toml --cold', '', 'p', 'h', 't', 'pipeline', 1),
  (11, 'sums', 'complete', 2000000000, 3, 'hr run p.toml --checksum', '', 'p', 'h', 't', 'pipeline', 0),
  (12, 'plan', 'complete', 2000000000, 3, 'hr run p.toml --plan x', 'cache.tier=memory', 'p', 'h', 't', 'pipeline', 0),
  (13, 'earlier', 'complete', 2000000000, 3, 'hr run p.toml', NULL, 'p', 'h', 't', 'pipeline', 0);
CREATE TABLE step_summary(run_id, steps_count, rows_count, wait_ns, compute_ns, wall_ns, step_p50_ns,
  step_p99_ns);
CREATE TABLE stage_summary(run_id, stage, stage_index, parallelism_count, last_parallelism_count,
  max_parallelism_count, lifetime_ns, on_cpu_ns, runnable_ns, unattributed_ns);
CREATE TABLE host_summary(run_id, metric, unit, mean_value, minimum_value, maximum_value, last_value,
  source);
INSERT INTO host_summary(run_id, metric, mean_value) VALUES (1, 'host_busy_cores', 1.5),
                                                            (2, 'host_busy_cores', 0.1);
)sql";
  for (int run = 1; run <= 13; ++run) {
    const std::string id = std::to_string(run);
    sql +=
        "INSERT INTO step_summary(run_id, steps_count, rows_count) VALUES (" + id + ", 9, 1000);";
    sql += "INSERT INTO stage_summary(run_id, stage, stage_index, on_cpu_ns) VALUES (" + id +
           ", 'a', 0, 1000000000), (" + id + ", 'b', 1, " + (run == 7 ? "NULL" : "3000000000") +
           ");";
  }
  std::string rest = kHandMade;
  rest.erase(0, rest.find("CREATE TABLE operator_summary"));
  for (const char* made : {"step_summary", "host_summary"}) {
    const size_t at = rest.find(std::string("CREATE TABLE ") + made);
    rest.erase(at, rest.find(';', at) + 1 - at);
  }
  rest.erase(rest.find("INSERT INTO step_summary"),
             rest.find(';', rest.find("INSERT INTO step_summary")) + 1 -
                 rest.find("INSERT INTO step_summary"));
  Make((sql + rest).c_str());
  const std::vector<LoadRow> loads = LoadRun(path_, "1").loads;
  ASSERT_EQ(loads.size(), 2u);
  EXPECT_TRUE(loads[0].own);
  EXPECT_DOUBLE_EQ(loads[0].busy_cores, 1.5);
  EXPECT_DOUBLE_EQ(loads[0].cpu_s_per_row, 0.004);
  EXPECT_FALSE(loads[1].own);
  EXPECT_DOUBLE_EQ(loads[1].busy_cores, 2);  // what it used itself, whatever the host says
  EXPECT_EQ(LoadRun(path_, "7").loads.size(), 2u) << "the others' loads, without its own";
  EXPECT_TRUE(LoadRun(path_, "13").loads.empty()) << "its settings are not known";
}

TEST_F(LoadRunTest, SiblingsDoTheSameWorkUnderTheSameConditions) {
  std::string sql = R"sql(
CREATE TABLE run_summary(run_id, name, state, duration_ns, accounting_level, level_asked, command,
  cores_count, ring_ns, kind, cold, hostname DEFAULT 'h', cpu_model DEFAULT 'c', kernel DEFAULT 'k',
  pipeline_path DEFAULT 'p.toml', pipeline_text DEFAULT 'p', settings_text DEFAULT '',
  table_text DEFAULT 't', element_order DEFAULT 'any', headrace_version DEFAULT 'v',
  deep DEFAULT 0, started_realtime_ns DEFAULT 0);
CREATE TABLE process_summary(run_id, process_id, pid, parent_pid, process, command, role, exit_text,
  has_accounts, started_ns, ended_ns, cpu_ns, read_bytes, threads_count, mean_rss_bytes,
  maximum_rss_bytes);
CREATE TABLE measurement_summary(run_id, metric);
CREATE TABLE stack_summary(run_id, time_ns);
CREATE TABLE metric_list(run_id, metric);
CREATE TABLE detail_range(run_id, start_ns, end_ns, reason);
CREATE TABLE measurement_interval(run_id, metric, start_ns, duration_ns, value, operator, process_id,
  pid, thread, subject, cause);
)sql";
  const struct {
    const char* command;
    int level;
    const char* kind;
    const char* level_asked = "2";
  } runs[] = {
      {"hr run p.toml", 2, "pipeline"},
      {"hr run p.toml --ceiling", 2, "ceiling"},
      {"hr run p.toml --checksum", 2, "pipeline"},
      {"hr run p.toml --cold", 2, "pipeline"},
      {"hr run p.toml --row-log rows", 2, "pipeline"},
      {"hr run p.toml --row-log=other", 2, "pipeline"},
      {"hr run p.toml --dump-tensors d", 2, "pipeline"},
      {"hr run p.toml --checkpoint at", 2, "pipeline"},
      {"hr run p.toml", 1, "pipeline"},
      {"hr run p.toml --checksum --cold", 2, "pipeline"},
      // As much as works, and less where the recorder stepped down.
      {"hr run p.toml --ceiling", 3, "ceiling", "NULL"},
      {"hr run p.toml", 2, "pipeline", "NULL"},
      {"hr run p.toml", 1, "pipeline", "NULL"},
  };
  int id = 0;
  for (const auto& run : runs) {
    sql +=
        "INSERT INTO run_summary(run_id, name, state, duration_ns, accounting_level, "
        "level_asked, command, kind) VALUES (" +
        std::to_string(++id) + ", 'n', 'complete', 4000000000, " + std::to_string(run.level) +
        ", " + run.level_asked + ", '" + run.command + "', '" + run.kind + "');";
  }
  std::string rest = kHandMade;
  rest.erase(0, rest.find("CREATE TABLE stage_summary"));
  Make((sql + rest).c_str());
  const struct {
    const char* run;
    std::vector<int64_t> siblings;  // the newest first
  } cases[] = {{"1", {12, 4, 2}}, {"4", {12, 2, 1}}, {"3", {10}}, {"5", {6}},
               {"7", {}},         {"8", {}},         {"9", {13}}, {"12", {11, 4, 2, 1}}};
  for (const auto& c : cases) {
    std::vector<int64_t> found;
    for (const SiblingRow& sibling : LoadRun(path_, c.run).siblings) {
      found.push_back(sibling.run_id);
    }
    EXPECT_EQ(found, c.siblings) << c.run;
  }
}

TEST_F(LoadRunTest, FindsRunsByLatestIdAndName) {
  Make(kHandMade);
  EXPECT_EQ(LoadRun(path_, "latest").run.name, "second");
  EXPECT_EQ(LoadRun(path_, "1").run.name, "first");
  EXPECT_EQ(CodeOf("third"), ExitCode::kBadData);
}

TEST_F(LoadRunTest, RefusesWhatIsNotADatabaseOfOurs) {
  EXPECT_EQ(CodeOf("latest"), ExitCode::kBadData);  // absent
  Make("CREATE TABLE other(x)");
  EXPECT_EQ(CodeOf("latest"), ExitCode::kBadData);
  std::ofstream(path_)
      << "this is a text file of some length, not a database at all, not a database";
  EXPECT_EQ(CodeOf("latest"), ExitCode::kBadData);
}

}  // namespace
}  // namespace headrace::analysis
