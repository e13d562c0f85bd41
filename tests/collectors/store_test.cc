#include "collectors/store/store.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "base/clock.h"
#include "base/error.h"
#include "collectors/store/embedded_sql.h"
#include "tests/collectors/store_fixture.h"
#include "tests/collectors/times.h"

namespace headrace::collectors {
namespace {

using testing::HasSubstr;

TEST_F(Store, SummariesAreSumsOfWhatWasAppended) {
  RunStore store(path_);
  const int64_t run = store.BeginRun(Info("r"));
  store.Append(run, {Interval(0, 250 * kMs), Interval(250 * kMs, 250 * kMs)});
  store.SetLoss(run, "step details", 1, 5);
  store.SetProbe(run, "accounts", "active", "", "");
  EXPECT_EQ(Row("SELECT state, duration_ns FROM run_summary"), "recording|500000000");
  store.FinishRun(run, RunState::kComplete);
  EXPECT_EQ(Row("SELECT state FROM run_summary"), "complete");
  EXPECT_EQ(Row("SELECT operator, stage, completions_count, busy_ns, on_cpu_ns, blocked_ns, "
                "runnable_ns, source FROM operator_summary"),
            "op0|decode|20|300000000|200000000|86000000|14000000|thread_clock");
  EXPECT_EQ(Row("SELECT stage, parallelism_count, lifetime_ns FROM stage_summary"),
            "decode|2|1000000000");
  EXPECT_EQ(Row("SELECT queue, producer_stage, consumer_stage, capacity_count, "
                "mean_occupancy_ratio, full_ratio, empty_ratio, puts_count FROM queue_summary"),
            "ready|decode||4|0.5|0.25|0.5|20");
  EXPECT_EQ(Row("SELECT resource, kind, acquisitions_count, wait_ns FROM resource_summary"),
            "table|lock|6|10000000");
  EXPECT_EQ(Row("SELECT steps_count, rows_count, wait_ns, wall_ns, step_p50_ns > 39200000 AND "
                "step_p50_ns < 40800000, step_p99_ns > 58800000 AND step_p99_ns < 61200000 "
                "FROM step_summary"),
            "4|256|120000000|500000000|1|1");
  EXPECT_EQ(Row("SELECT start_ns, duration_ns, busy_ns FROM operator_interval"),
            "0|250000000|150000000\n250000000|250000000|150000000");
  EXPECT_EQ(Row("SELECT lost_count, total_count FROM loss_summary"), "1|5");
}

// What a probe read of the whole machine: without a label, and by device.
TEST_F(Store, FiguresOfTheMachineHaveTotalsAndACourse) {
  RunStore store(path_);
  const int64_t run = store.BeginRun(Info("r"));
  MeasurementBatch batch;
  batch.metrics = {{"cpu_ns", "ns", "counter", "counter", "none", "CPU time."},
                   {"rss_bytes", "bytes", "gauge", "counter", "none", "Memory."}};
  for (const auto& [id, metric, subject] :
       {std::tuple(0, "cpu_ns", ""), {1, "rss_bytes", ""}, {2, "cpu_ns", "a device"}}) {
    MeasurementRow row;
    row.id = id;
    row.metric = metric;
    row.subject = subject;
    row.source = "counter";
    batch.definitions.push_back(row);
  }
  batch.totals = {
      {0, 0, 0, 0, 0, 70, {}}, {1, 2 * kSecond, 2e9 * 5, 4, 6, 6, {}}, {2, 0, 0, 0, 0, 9, {}}};
  batch.intervals = {{0, 0, kSecond, 20}, {0, 3 * kSecond, kSecond, 50}, {1, 0, kSecond, 4}};
  store.Append(run, {Interval(0, kSecond)}, batch);
  EXPECT_EQ(Row("SELECT metric, subject, mean_value, maximum_value, last_value FROM host_summary "
                "ORDER BY metric, subject"),
            "cpu_ns||||70\ncpu_ns|a device|||9\nrss_bytes||5|6|6");
  EXPECT_EQ(Row("SELECT metric, start_ns, duration_ns, value FROM host_interval ORDER BY metric, "
                "start_ns"),
            "cpu_ns|0|1000000000|20\ncpu_ns|3000000000|1000000000|70\n"
            "rss_bytes|0|1000000000|4")
      << "a counter's value is its total at the interval's end";
}

TEST_F(Store, WhatWasNotMeasuredIsNull) {
  RunStore store(path_);
  const int64_t run = store.BeginRun(Info("r"));
  IntervalSample t = Interval(0, 250 * kMs);
  t.operators[0].on_cpu_ns.reset();
  t.operators[0].runnable_ns.reset();
  t.stages[0].on_cpu_ns.reset();
  t.queues[0].observed_ns = t.queues[0].capacity_ns = 0;
  store.Append(run, {t});
  EXPECT_EQ(Row("SELECT on_cpu_ns IS NULL, blocked_ns IS NULL, runnable_ns IS NULL, source FROM "
                "operator_summary"),
            "1|1|1|account");
  EXPECT_EQ(Row("SELECT on_cpu_ns IS NULL FROM stage_summary"), "1");
  EXPECT_EQ(Row("SELECT full_ratio IS NULL, mean_occupancy_ratio IS NULL FROM queue_summary"),
            "1|1");
}

TEST_F(Store, RunsAreFoundByIdNameAndLatest) {
  RunStore store(path_);
  EXPECT_THAT(Caught([&] { store.FindRun("latest"); }).what(), HasSubstr("no runs"));
  const int64_t a = store.BeginRun(Info("a")), b = store.BeginRun(Info("b"));
  const int64_t again = store.BeginRun(Info("a"));
  ReadStore reader(path_);
  EXPECT_EQ(reader.FindRun("latest"), again);
  EXPECT_EQ(reader.FindRun("a"), again);
  EXPECT_EQ(reader.FindRun("b"), b);
  EXPECT_EQ(reader.FindRun(std::to_string(a)), a);
  const Error error = Caught([&] { reader.FindRun("c"); });
  EXPECT_EQ(error.code(), ExitCode::kBadData);
  EXPECT_THAT(error.what(), HasSubstr("no run 'c'"));
  EXPECT_THAT(error.what(), HasSubstr("2 b"));
}

TEST_F(Store, RemovedRunLeavesNothingCopiedRunIsWhole) {
  RunStore store(path_);
  const int64_t a = store.BeginRun(Info("a")), b = store.BeginRun(Info("b"));
  for (const int64_t run : {a, b}) store.Append(run, {Interval(0, kSecond, 3)});
  store.SetTags(b, "one two");
  const std::string copy = folder_ + "/copy.db";
  store.CopyRun(b, copy);
  store.RemoveRun(b);
  EXPECT_EQ(Row("SELECT COUNT(*) FROM operator_interval"), "3");
  EXPECT_EQ(Row("SELECT COUNT(*) FROM operators"), "3");
  EXPECT_EQ(Caught([&] { store.CopyRun(a, copy); }).code(), ExitCode::kUsage);
  path_ = copy;
  EXPECT_EQ(Row("SELECT name, tags FROM run_summary"), "b|one two");
  EXPECT_EQ(Row("SELECT COUNT(*) FROM operator_interval"), "3");
  int files = 0;
  for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator(folder_)) files++;
  EXPECT_LE(files, 6) << "no temporary file is left";
}

TEST_F(Store, ComparisonsOutliveTheirRunsAndDecisionsDoNot) {
  RunStore store(path_);
  const int64_t a = store.BeginRun(Info("a")), b = store.BeginRun(Info("b"));
  const int64_t comparison =
      store.BeginComparison({"threads", "p.parallelism=1", "p.parallelism=2", "7", 1000});
  EXPECT_EQ(Row("SELECT state, pairs_count, duration_ns IS NULL FROM comparison_summary"),
            "running|0|1");
  store.SetComparisonRun(comparison, {0, 0, 'a', a, ""});
  EXPECT_EQ(Row("SELECT pairs_count FROM comparison_summary"), "0") << "half a pair";
  store.SetComparisonRun(comparison, {1, 0, 'b', b, ""});
  store.SetComparisonRun(comparison, {2, 1, 'b', std::nullopt, "too short"});
  store.SetComparisonRun(comparison, {3, 1, 'a', a, ""});
  EXPECT_EQ(Row("SELECT pairs_count FROM comparison_summary"), "1");
  store.FinishComparison(comparison, ComparisonState::kComplete, 5, "faster", "{}");

  DecisionRow decision;
  decision.action = "apply";
  decision.at_ns = 3;
  decision.now_rate = 10.5;
  decision.changes = {{"parse.parallelism", "1", "2"}, {"parse.queue", "4", "8"}};
  store.SetDecision(b, decision);
  decision.observed_ns = 9;
  decision.verdict = "kept";
  decision.changes.pop_back();
  store.SetDecision(b, decision);  // judged later: replaces itself
  const auto decisions = [&] {
    return Row(
        "SELECT action, at_ns, observed_ns, now_rate, predicted_rate IS NULL, verdict, "
        "knob, from_text, to_text FROM decision_summary JOIN decision_change "
        "USING (run_id, decision_index)");
  };
  EXPECT_EQ(decisions(), "apply|3|9|10.5|1|kept|parse.parallelism|1|2");

  store.CopyRun(b, folder_ + "/copy.db");
  store.RemoveRun(b);
  EXPECT_EQ(decisions(), "");
  EXPECT_EQ(Row("SELECT order_index, side, run_id FROM comparison_run WHERE left_out = ''"),
            fmt::format("0|a|{0}\n1|b|{1}\n3|a|{0}", a, b));
  EXPECT_EQ(Row("SELECT state, duration_ns, a_label, verdict, result_json FROM comparison_summary"),
            "complete|5|p.parallelism=1|faster|{}");
  store.RemoveComparison(comparison);
  EXPECT_EQ(Row("SELECT COUNT(*) FROM comparison_run"), "0");
  path_ = folder_ + "/copy.db";
  EXPECT_EQ(decisions(), "apply|3|9|10.5|1|kept|parse.parallelism|1|2") << "copied with its run";
}

TEST_F(Store, AComparisonWhoseProgramWasKilledIsInterrupted) {
  const auto states = [&] { return Row("SELECT state FROM comparison_summary"); };
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    RunStore(path_).BeginComparison({"killed", "a", "b", "7", 1000});
    kill(getpid(), SIGKILL);
    _exit(0);
  }
  ASSERT_EQ(waitpid(child, nullptr, 0), child);
  RunStore store(path_);
  store.BeginComparison({"mine", "a", "b", "7", 1000});
  EXPECT_EQ(states(), "interrupted\nrunning");
  store.database().Execute("UPDATE comparisons SET state = 'running'");
  EXPECT_EQ(states(), "interrupted\nrunning") << "whoever reads notices";
  // Nothing is known about another machine; a pid of ours says nothing about its processes.
  store.database().Execute("UPDATE comparisons SET hostname = 'elsewhere', state = 'running'");
  EXPECT_EQ(states(), "running\nrunning");
  // One of an earlier version told nobody who made it; if it goes on all the same, its end is kept.
  store.database().Execute("UPDATE comparisons SET hostname = '', writer_pid = NULL");
  EXPECT_EQ(states(), "interrupted\ninterrupted");
  store.FinishComparison(1, ComparisonState::kComplete, 5, "same", "{}");
  EXPECT_EQ(states(), "complete\ninterrupted");
}

TEST_F(Store, ForeignFilesAreRefusedWithTheReason) {
  struct Case {
    const char* name;
    std::function<void(const std::string&)> make;
    const char* expected;
  };
  const Case kCases[] = {
      {"absent", [](const std::string&) {}, "no such database"},
      {"text", [](const std::string& p) { std::ofstream(p) << std::string(5000, 'x'); },
       "not a headrace database"},
      {"foreign",
       [](const std::string& p) {
         Database other(p, Database::Mode::kCreate);
         other.Execute("CREATE TABLE t (x)");
       },
       "a SQLite file but not a headrace database"},
      {"newer",
       [](const std::string& p) {
         { RunStore store(p); }
         Database(p, Database::Mode::kReadWrite).Execute("PRAGMA user_version = 99");
       },
       "schema 99"},
      {"empty",  // a new one would be waited for
       [](const std::string& p) {
         std::ofstream(p).close();
         const timespec long_ago[2] = {{1, 0}, {1, 0}};
         utimensat(AT_FDCWD, p.c_str(), long_ago, 0);
       },
       "empty file"},
      {"damaged",
       [](const std::string& p) {
         {
           RunStore store(p);
           const int64_t run = store.BeginRun(RunInfo{});
           store.Append(run, {Interval(0, kSecond, 100)});
         }
         std::fstream file(p, std::ios::in | std::ios::out | std::ios::binary);
         file.seekp(4096);
         file << std::string(40000, '\xee');
       },
       "damaged"}};
  for (const Case& c : kCases) {
    SCOPED_TRACE(c.name);
    const std::string path = folder_ + "/" + c.name;
    c.make(path);
    const Error error = Caught([&] {
      ReadStore store(path);
      store.Query("SELECT * FROM operator_summary");
    });
    EXPECT_EQ(error.code(), ExitCode::kBadData);
    EXPECT_THAT(error.what(), HasSubstr(c.expected));
    if (std::string(c.name) == "foreign" || std::string(c.name) == "text" ||
        std::string(c.name) == "newer") {
      EXPECT_EQ(Caught([&] { RunStore store(path); }).code(), ExitCode::kBadData);
    }
  }
}

TEST_F(Store, UserSqlMayOnlyRead) {
  {
    RunStore store(path_);
    store.Append(store.BeginRun(Info("r")), {Interval(0, kSecond)});
  }
  ReadStore store(path_);
  for (const char* sql :
       {"DROP TABLE runs", "DELETE FROM runs", "UPDATE runs SET name = 'x'",
        "INSERT INTO probes VALUES (1, 'x', 'active', '', '')", "ATTACH ':memory:' AS m",
        "PRAGMA journal_mode = DELETE", "CREATE TABLE x (y)", "BEGIN", "VACUUM",
        "SELECT load_extension('x')", "CREATE TEMP TABLE x (y)",
        "WITH x AS (SELECT 1) DELETE FROM runs", "ALTER TABLE runs ADD COLUMN x"}) {
    const Error error = Caught([&] { store.QueryUntrusted(sql); });
    EXPECT_EQ(error.code(), ExitCode::kUsage) << sql;
    EXPECT_THAT(error.what(), HasSubstr("read-only")) << sql;
  }
  EXPECT_THAT(Caught([&] { store.QueryUntrusted("DROP TABLE runs"); }).what(),
              HasSubstr("DROP is not allowed here"));
  EXPECT_EQ(Caught([&] { store.QueryUntrusted("SELECT 1; SELECT 2"); }).code(), ExitCode::kUsage);
  EXPECT_EQ(Caught([&] { store.QueryUntrusted("SELEC 1"); }).code(), ExitCode::kUsage);
  EXPECT_EQ(Caught([&] { store.QueryUntrusted("  "); }).code(), ExitCode::kUsage);
  EXPECT_EQ(store.QueryUntrusted("SELECT COUNT(*) FROM operator_summary;").rows.size(), 1u);
  EXPECT_EQ(store.QueryUntrusted("WITH x AS (SELECT 1 AS a) SELECT a FROM x").rows.size(), 1u);
  const int64_t begin = MonotonicNs();
  const Error error = Caught([&] {
    store.QueryUntrusted(
        "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT "
        "MAX(i) FROM n",
        {.ns = 200 * kMs});
  });
  EXPECT_THAT(error.what(), HasSubstr("stopped after"));
  EXPECT_LT(MonotonicNs() - begin, 300 * kSecond) << "it has no end of its own";
  EXPECT_EQ(store.Query("SELECT 1").rows.size(), 1u) << "the guard is released";

  const std::string numbers =
      "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n LIMIT 100) SELECT i FROM n";
  EXPECT_FALSE(store.QueryUntrusted(numbers).cut);
  const SqlResult few = store.QueryUntrusted(numbers, {.rows = 10});
  EXPECT_EQ(few.rows.size(), 10u);
  EXPECT_TRUE(few.cut);
  const SqlResult small = store.QueryUntrusted(numbers, {.bytes = 1000, .cut = true});
  EXPECT_LT(small.rows.size(), 100u);
  EXPECT_TRUE(small.cut);
  EXPECT_EQ(Caught([&] { store.QueryUntrusted(numbers, {.bytes = 1000}); }).code(),
            ExitCode::kResources);
  EXPECT_NE(Caught([&] {
              store.QueryUntrusted("SELECT zeroblob(100000000)", {.bytes = 1000000, .cut = true});
            }).code(),
            ExitCode::kOk)
      << "one value larger than the result may be";
}

TEST_F(Store, SeveralProcessesRecordIntoOneFile) {
  constexpr int kWriters = 3, kIntervals = 40;
  std::vector<pid_t> children;
  for (int w = 0; w < kWriters; w++) {
    const pid_t child = fork();
    if (child == 0) {
      try {
        RunStore store(path_);
        const int64_t run = store.BeginRun(Info("w" + std::to_string(w)));
        for (int i = 0; i < kIntervals; i++)
          store.Append(run, {Interval(i * kSecond, kSecond, 20)});
        store.FinishRun(run, RunState::kComplete);
        _exit(0);
      } catch (const Error& error) {
        std::fprintf(stderr, "%s\n", error.what());
        _exit(1);
      }
    }
    children.push_back(child);
  }
  for (const pid_t child : children) {
    int status;
    waitpid(child, &status, 0);
    EXPECT_EQ(status, 0);
  }
  EXPECT_EQ(Row("SELECT COUNT(*), SUM(completions_count) FROM operator_summary"),
            fmt::format("{}|{}", kWriters * 20, kWriters * 20 * kIntervals * 10));
  EXPECT_EQ(Row("SELECT COUNT(*) FROM run_summary WHERE state = 'complete'"), "3");
}

TEST_F(Store, RunOfADeadCollectorBecomesInterrupted) {
  const pid_t child = fork();
  if (child == 0) {
    RunStore store(path_);
    store.Append(store.BeginRun(Info("dead")), {Interval(0, kSecond)});
    kill(getpid(), SIGKILL);
  }
  waitpid(child, nullptr, 0);
  RunStore own(path_);
  const int64_t alive = own.BeginRun(Info("alive"));
  EXPECT_EQ(Row("SELECT name, state FROM run_summary ORDER BY run_id"),
            "dead|interrupted\nalive|recording");
  own.FinishRun(alive, RunState::kComplete);
}

TEST_F(Store, RollupKeepsEverySum) {
  RunStore store(path_);
  const int64_t run = store.BeginRun(Info("r"));
  std::vector<IntervalSample> batch;
  constexpr int kIntervals = 4 * 60 * 75;  // 75 minutes
  for (int i = 0; i < kIntervals; i++) {
    batch.push_back(Interval(i * 250 * kMs, 250 * kMs, 2));
    if (batch.size() == 240) {
      store.Append(run, batch);
      batch.clear();
      store.Rollup(run, (i + 1) * 250 * kMs);
    }
  }
  store.Append(run, batch);
  EXPECT_EQ(Row("SELECT SUM(busy_ns), SUM(completions_count), SUM(wait_in_ns) FROM "
                "operator_interval"),
            Row("SELECT SUM(busy_ns), SUM(completions_count), SUM(wait_in_ns) FROM "
                "operator_summary"));
  EXPECT_EQ(Row("SELECT SUM(duration_ns), SUM(steps_count) FROM step_interval"),
            fmt::format("{}|{}", kIntervals * 250 * kMs, kIntervals * 2));
  EXPECT_EQ(Row("SELECT ROUND(AVG(mean_occupancy_ratio), 6), ROUND(AVG(full_ratio), 6) FROM "
                "queue_interval"),
            "0.5|0.25");
  // Fine where it is new, coarse where it is old; no gap and no overlap.
  EXPECT_EQ(Row("SELECT MAX(duration_ns), MIN(duration_ns) FROM step_interval"),
            "16000000000|250000000");
  EXPECT_EQ(Row("SELECT COUNT(*) FROM (SELECT start_ns + duration_ns - LEAD(start_ns) OVER (ORDER "
                "BY start_ns) AS gap FROM step_interval) WHERE gap != 0"),
            "0");
  EXPECT_LT(std::atoi(Row("SELECT COUNT(*) FROM step_interval").c_str()), 2400 + 1600 + 100);
}

// Intervals as those of an hour ago are, and what a day leaves of them.
TEST_F(Store, RollupLengthensIntervalsWithTheirAge) {
  RunStore store(path_);
  const int64_t run = store.BeginRun(Info("r"));
  std::vector<IntervalSample> batch;
  constexpr int64_t kNow = 26 * 3600 * kSecond;
  for (int64_t t = 0; t < kNow; t += 2 * kSecond) batch.push_back(Interval(t, 2 * kSecond, 1));
  store.Append(run, batch);
  store.Rollup(run, kNow);
  store.Rollup(run, kNow);  // once more: of what is merged nothing changes
  const auto lengths = [&](int64_t least_age_s, int64_t most_age_s) {
    return Row(
        fmt::format("SELECT MIN(duration_ns) / 1000000000, MAX(duration_ns) / 1000000000 "
                    "FROM step_interval WHERE start_ns > {} AND start_ns < {}",
                    kNow - most_age_s * kSecond, kNow - least_age_s * kSecond));
  };
  EXPECT_EQ(lengths(0, 3500), "2|2");
  EXPECT_EQ(lengths(3700, 21500), "16|16");
  EXPECT_EQ(lengths(21700, 86200), "64|64");
  EXPECT_EQ(lengths(86600, 93000), "128|128");
  EXPECT_EQ(Row("SELECT SUM(duration_ns) FROM step_interval"), std::to_string(kNow));
  EXPECT_EQ(Row("SELECT SUM(busy_ns) FROM operator_interval"),
            Row("SELECT SUM(busy_ns) FROM operator_summary"));
}

MeasurementBatch Batch(int64_t start_ns, int64_t duration_ns, int num, bool define) {
  MeasurementBatch batch;
  if (define) {
    batch.metrics = {{"x_bytes", "bytes", "counter", "ebpf", "CAP_BPF", "Bytes."},
                     {"x_ratio", "ratio", "gauge", "counter", "none", "A level."}};
    batch.processes = {{0, 4242, 1, "p", "p --all", "root", true, -5, std::nullopt, ""}};
  }
  for (int i = 0; i < num; i++) {
    if (define) {
      MeasurementRow row;
      row.id = i;
      row.metric = i % 2 ? "x_ratio" : "x_bytes";
      row.source = "ebpf";
      row.operator_id = i % 100;
      row.process_id = 0;
      row.thread = "worker";
      row.subject = "sda";
      row.cause = "read";
      batch.definitions.push_back(row);
    }
    batch.totals.push_back({i,
                            start_ns + duration_ns,
                            2.0 * static_cast<double>(start_ns),
                            1,
                            3,
                            static_cast<double>(start_ns),
                            {}});
    batch.intervals.push_back(
        {i, start_ns, duration_ns, static_cast<double>(start_ns % 977) + 0.5});
  }
  return batch;
}

TEST_F(Store, MeasurementsComeBackWithNames) {
  RunStore store(path_);
  const int64_t run = store.BeginRun(Info("r"));
  MeasurementBatch batch = Batch(0, kSecond, 2, true);
  batch.stacks = {{0, "cpu", 0, 0, "worker", "main;work", 10, 100}};
  store.Append(run, {Interval(0, kSecond)}, batch);
  EXPECT_EQ(Row("SELECT metric, unit, kind, operator, stage, process, pid, thread, subject, cause, "
                "bucket, value, minimum_value, last_value FROM measurement_summary"),
            "x_bytes|bytes|counter|op0|decode|p|4242|worker|sda|read||0||0\n"
            "x_ratio|ratio|gauge|||p|4242|worker|sda|read||0|1|0");
  batch = Batch(kSecond, kSecond, 2, false);
  batch.stacks = {{0, "cpu", 0, 0, "worker", "main;work", 30, 300}};
  batch.processes = {{0, 4242, 1, "p", "p --all", "root", true, -5, 7, "exited 1"}};
  store.Append(run, {Interval(kSecond, kSecond)}, batch);
  EXPECT_EQ(Row("SELECT metric, value FROM measurement_summary"), "x_bytes|1e+09\nx_ratio|1");
  EXPECT_EQ(Row("SELECT start_ns, duration_ns, operator FROM measurement_interval WHERE metric = "
                "'x_bytes'"),
            "0|1000000000|op0\n1000000000|1000000000|op0");
  EXPECT_EQ(Row("SELECT DISTINCT class IS NULL FROM stack_summary WHERE kind = 'cpu'"), "1");
  EXPECT_EQ(Row("SELECT operator, process, folded, samples_count, time_ns FROM stack_summary"),
            "op0|p|main;work|30|300");
  EXPECT_EQ(Row("SELECT pid, ended_ns, exit_text, role FROM process_summary"),
            "4242|7|exited 1|root");
  EXPECT_EQ(Row("SELECT metric, unit, kind, privilege FROM metric_list"),
            "x_bytes|bytes|counter|CAP_BPF\nx_ratio|ratio|gauge|none");
  EXPECT_EQ(Row("SELECT COUNT(*) FROM host_summary WHERE metric LIKE 'x_%'"), "0")
      << "what belongs to a process is not the machine's";
  store.CopyRun(run, folder_ + "/copy.db");
  path_ = folder_ + "/copy.db";
  EXPECT_EQ(Row("SELECT COUNT(*) FROM measurement_interval"), "4");
  EXPECT_EQ(Row("SELECT COUNT(*) FROM stack_summary"), "1");
}

TEST_F(Store, PurposeViewsPickTheirMetrics) {
  RunStore store(path_);
  const int64_t run = store.BeginRun(Info("r"));
  MeasurementBatch batch;
  batch.processes = {{0, 7, 1, "p", "", "root", false, 0, std::nullopt, ""}};
  const auto add = [&](const char* metric, const char* unit, std::optional<int64_t> op,
                       const char* subject, const char* cause, std::optional<int64_t> bucket,
                       double value) {
    batch.metrics.push_back({metric, unit, "counter", "ebpf", "", ""});
    MeasurementRow row;
    row.id = static_cast<int64_t>(batch.definitions.size());
    row.metric = metric;
    row.source = "ebpf";
    row.operator_id = op;
    row.process_id = 0;
    row.thread = "t";
    row.subject = subject;
    row.cause = cause;
    row.bucket = bucket;
    batch.totals.push_back({row.id, 0, 0, 0, 0, value, {}});
    batch.definitions.push_back(std::move(row));
  };
  add("off_cpu_ns", "ns", 0, "", "storage", {}, 70);
  add("off_cpu_count", "count", 0, "", "storage", {}, 7);
  add("off_cpu_ns", "ns", 0, "", "pipe", {}, 5);
  add("off_cpu_wait_ns", "ns", 0, "", "lock", {}, 9);
  add("on_cpu_ns", "ns", {}, "", "", {}, 1000);
  add("switches_count", "count", {}, "", "voluntary", {}, 4);
  add("wakeups_count", "count", {}, "12/reader", "lock", {}, 3);
  add("block_requests_count", "count", 0, "sda", "read", {}, 4);
  add("block_bytes", "bytes", 0, "sda", "read", {}, 4096);
  add("block_latency_ns", "ns", 0, "sda", "read", {}, 400);
  add("block_latency_count", "count", 0, "sda", "read", 64, 4);
  add("block_size_latency_count", "count", 0, "sda", "read", 64 * 12 + 17, 4);
  add("socket_received_bytes", "bytes", {}, "a:1>b:2", "", {}, 55);
  add("instructions_count", "count", 0, "", "", {}, 123);
  store.Append(run, {Interval(0, kSecond)}, batch);
  EXPECT_EQ(Row("SELECT operator, cause, class, blocked_ns, blocked_count, wait_ns FROM "
                "off_cpu_summary ORDER BY cause"),
            "op0|lock|lock|||9\nop0|pipe|other|5||\nop0|storage|storage|70|7|");
  EXPECT_EQ(Row("SELECT pid, thread, on_cpu_ns, runnable_ns, blocked_ns, voluntary_switches_count "
                "FROM thread_summary"),
            "7|t|1000||75|4");
  EXPECT_EQ(Row("SELECT waker_pid, waker_thread, wakee_pid, wakee_thread, cause, wakeups_count "
                "FROM wakeup_summary"),
            "12|reader|7|t|lock|3");
  EXPECT_EQ(Row("SELECT device, direction, operator, requests_count, bytes, mean_size_bytes, "
                "mean_latency_ns, sequential_ratio FROM io_summary"),
            "sda|read|op0|4|4096|1024|100|");
  EXPECT_EQ(Row("SELECT metric, bucket, events_count FROM io_histogram"),
            "block_latency_count|64|4");
  EXPECT_EQ(Row("SELECT device, direction, operator, size_bytes, latency_ns, events_count FROM "
                "io_size_latency"),
            "sda|read|op0|4096|131072|4");
  EXPECT_EQ(Row("SELECT socket, received_bytes, sent_bytes FROM network_summary"), "a:1>b:2|55|");
  EXPECT_EQ(Row("SELECT metric, operator, value FROM counter_summary"),
            "instructions_count|op0|123");
}

TEST_F(Store, RollupKeepsSumsAndMeansOfMeasurements) {
  RunStore store(path_);
  const int64_t run = store.BeginRun(Info("r"));
  double sum = 0;
  for (int64_t t = 0; t < 2000; t++) {
    const MeasurementBatch batch = Batch(t * kSecond, kSecond, 2, t == 0);
    sum += batch.intervals[0].value;
    store.Append(run, {}, batch);
    if (t % 60 == 0) store.Rollup(run, t * kSecond);
  }
  const double expected_mean = sum / 2000;
  store.Rollup(run, 4000 * kSecond);
  EXPECT_EQ(Row("SELECT SUM(value) FROM measurement_interval WHERE metric = 'x_bytes'"),
            fmt::format("{:.4g}", sum));
  EXPECT_EQ(Row("SELECT SUM(value * duration_ns) / SUM(duration_ns) FROM measurement_interval "
                "WHERE metric = 'x_ratio'"),
            fmt::format("{:.4g}", expected_mean));
  EXPECT_EQ(Row("SELECT MAX(duration_ns) <= 128000000000, COUNT(*) < 200 FROM measurement_interval "
                "WHERE metric = 'x_bytes'"),
            "1|1");
  EXPECT_EQ(Row("SELECT SUM(duration_ns) FROM measurement_interval WHERE metric = 'x_bytes'"),
            std::to_string(2000 * kSecond));
}

// c and b are told where their bounds are close, over the interval as over the run, also after
// intervals were merged.
TEST_F(Store, TimesWhoseBoundsAreWideAreNotTold) {
  RunStore store(path_);
  const int64_t run = store.BeginRun(Info("r"));
  const auto append = [&](int64_t at, int64_t low, int64_t high) {
    IntervalSample t;
    t.start_ns = at * kSecond;
    t.duration_ns = kSecond;
    t.stages.push_back({0, "s", 0, 1, 0, kSecond, kSecond, 0, 500 * kMs, 10 * kMs, kSecond});
    OperatorSample o;
    o.name = "op";
    o.busy_ns = 800 * kMs;
    o.on_cpu_ns = 300 * kMs;
    o.runnable_ns = 5 * kMs;
    o.on_cpu_low_ns = low * kMs;
    o.on_cpu_high_ns = high * kMs;
    o.runnable_low_ns = 0;
    o.runnable_high_ns = 10 * kMs;
    o.time_source = "thread_clock";
    t.operators.push_back(o);
    store.Append(run, {t});
  };
  const std::string columns =
      "on_cpu_ns / 1000000, blocked_ns / 1000000, runnable_ns / 1000000, on_cpu_low_ns / 1000000, "
      "on_cpu_high_ns / 1000000, blocked_low_ns / 1000000, blocked_high_ns / 1000000";
  append(0, 290, 310);
  EXPECT_EQ(Row("SELECT " + columns + " FROM operator_interval"), "300|495|5|290|310|480|510");
  EXPECT_EQ(Row("SELECT " + columns + " FROM operator_summary"), "300|495|5|290|310|480|510");
  append(1, 100, 700);
  EXPECT_EQ(Row("SELECT " + columns + " FROM operator_interval WHERE start_ns > 0"),
            "|||100|700|90|700");
  EXPECT_EQ(Row("SELECT " + columns + " FROM operator_summary"), "|||390|1010|570|1210");
  for (int64_t at = 2; at < 40; at++) append(at, 290, 310);
  EXPECT_EQ(Row("SELECT on_cpu_ns IS NOT NULL FROM operator_summary"), "1")
      << "over the run the bounds are close";
  const std::string sums =
      Row("SELECT SUM(on_cpu_low_ns), SUM(on_cpu_high_ns) FROM operator_interval");
  store.Rollup(run, 4000 * kSecond);
  EXPECT_LT(std::stoll(Row("SELECT COUNT(*) FROM operator_interval")), 40);
  EXPECT_EQ(Row("SELECT SUM(on_cpu_low_ns), SUM(on_cpu_high_ns) FROM operator_interval"), sums);
}

TEST_F(Store, PredictionsStandBesideWhatWasObserved) {
  RunStore store(path_);
  const int64_t run = store.BeginRun(Info("planned"));
  std::vector<IntervalSample> intervals;
  for (int i = 0; i < 10; ++i) {
    IntervalSample interval = Interval(i * kSecond, kSecond);
    // The start is slow, and the end hands out what the queues hold.
    interval.steps.steps = i == 0 ? 1 : i == 9 ? 500 : 40;
    intervals.push_back(std::move(interval));
  }
  store.Append(run, intervals);
  store.SetPrediction(run, {7, 44, 40, 48, "decode", "stage"});
  EXPECT_EQ(Row("SELECT from_run_id, batches_per_second, limited_by_kind, "
                "observed_batches_per_second FROM prediction_summary"),
            "7|44|stage|40");
  store.SetPrediction(run, {std::nullopt, 50, std::nullopt, std::nullopt, "", ""});
  EXPECT_EQ(Row("SELECT COUNT(*), MAX(batches_per_second), MAX(low) FROM prediction_summary"),
            "1|50|");
  const std::string copy = folder_ + "/copy.db";
  store.CopyRun(run, copy);
  EXPECT_EQ(ReadStore(copy).Query("SELECT * FROM prediction_summary").rows.size(), 1u);
  store.RemoveRun(run);
  EXPECT_EQ(Row("SELECT COUNT(*) FROM prediction_summary"), "0");
}

TEST_F(Store, ConditionsOfARunAreKeptAndCopied) {
  RunStore store(path_);
  const int64_t run = store.BeginRun(Info("cold")), other = store.BeginRun(Info("other"));
  EXPECT_EQ(Row("SELECT COUNT(kind), COUNT(cold), COUNT(element_order) FROM run_summary"), "0|0|0");
  RunConditions conditions;
  conditions.kind = "ceiling";
  conditions.settings_text = "decode.parallelism=2";
  conditions.table_text = "1 file";
  conditions.cold = true;
  conditions.resident_ratio = 0.25;
  conditions.resident_before_ratio = 1;
  conditions.epoch_splits_count = 12;
  conditions.element_order = "file";
  conditions.order_window_count = 8;
  conditions.settings = {{"source.epochs", "1"}, {"source.io", "pread"}};
  store.SetConditions(run, conditions);
  store.SetFacts(run, {{"sample_dedup_ratio", 9, "ratio"}});
  store.SetFacts(run,
                 {{"sample_dedup_ratio", 1.5, "ratio"}, {"clustered_dedup_ratio", 2.5, "ratio"}});
  const char* const kAll =
      "SELECT kind, settings_text, table_text, cold, resident_ratio, resident_before_ratio, "
      "resident_note, epoch_splits_count, element_order, order_window_count, "
      "clustered_dedup_ratio, sample_dedup_ratio FROM run_summary ORDER BY run_id LIMIT 1";
  const std::string kept = "ceiling|decode.parallelism=2|1 file|1|0.25|1||12|file|8|2.5|1.5";
  EXPECT_EQ(Row(kAll), kept);
  const char* const kSettings = "SELECT run_id, key, value FROM run_setting ORDER BY key";
  EXPECT_EQ(Row(kSettings), "1|source.epochs|1\n1|source.io|pread");
  EXPECT_EQ(Row("SELECT COUNT(kind) FROM run_summary"), "1") << "not of run " << other;
  conditions = {};
  conditions.resident_note = "remote storage";
  store.SetConditions(other, conditions);
  EXPECT_EQ(Row("SELECT kind, cold, resident_ratio, resident_note, epoch_splits_count, "
                "element_order FROM run_summary WHERE name = 'other'"),
            "pipeline|0||remote storage||any");
  const std::string copy = folder_ + "/copy.db";
  store.CopyRun(run, copy);
  path_ = copy;
  EXPECT_EQ(Row(kAll), kept);
  EXPECT_EQ(Row(kSettings), "1|source.epochs|1\n1|source.io|pread");
}

// Facts that had columns of their own are rows for who reads, whichever version stored them.
TEST_F(Store, FactsOfEarlierVersionsAreRowsLikeOthers) {
  {
    Database database(path_, Database::Mode::kCreate);
    for (size_t i = 0; i < 6; ++i) database.Execute(std::string(SchemaFiles()[i].text));
    database.Execute("PRAGMA application_id = 0x68647263; PRAGMA user_version = 6");
    database.Execute(
        "INSERT INTO runs (name, state, pid, started_realtime_ns, collector_pid, collector_start, "
        "clustered_dedup_ratio, sample_dedup_ratio) VALUES ('old', 'complete', 1, 1, 1, 1, 4, 2)");
  }
  const char* const kFacts =
      "SELECT name, value, unit FROM run_fact WHERE run_id = 1 ORDER BY name";
  const char* const kColumns = "SELECT clustered_dedup_ratio, sample_dedup_ratio FROM run_summary";
  const std::string facts = "clustered_dedup_ratio|4|ratio\nsample_dedup_ratio|2|ratio";
  EXPECT_EQ(Row(kFacts), facts) << "read as it is";
  RunStore store(path_);
  EXPECT_EQ(Row(kFacts), facts) << "upgraded";
  EXPECT_EQ(Row(kColumns), "4|2");
  store.SetFacts(1, {{"clustered_dedup_ratio", 5, "ratio"}, {"moved_bytes", 7, "bytes"}});
  EXPECT_EQ(Row(kFacts),
            "clustered_dedup_ratio|5|ratio\nmoved_bytes|7|bytes\n"
            "sample_dedup_ratio|2|ratio");
  EXPECT_EQ(Row(kColumns), "5|2");
  store.RemoveRun(1);
  EXPECT_EQ(Row(kFacts), "");
}

// A file of version 1, made by its own migration, keeps its rows when this version opens it.
TEST_F(Store, AVersion1DatabaseIsUpgradedWithItsRows) {
  {
    Database database(path_, Database::Mode::kCreate);
    database.Execute(std::string(SchemaFiles()[0].text));
    database.Execute("PRAGMA application_id = 0x68647263");
    database.Execute("PRAGMA user_version = 1");
    database.Execute(
        "INSERT INTO runs (name, state, pid, started_realtime_ns, collector_pid, collector_start) "
        "VALUES ('old', 'complete', 1, 1, 1, 1);"
        "INSERT INTO stages (run_id, stage_id, stage, stage_index) VALUES (1, 0, 's', 0);"
        "INSERT INTO operators (run_id, operator_id, operator, kind, stage_id, position_index, "
        "busy_ns, on_cpu_ns) VALUES (1, 0, 'decode', 'decode', 0, 0, 70, 60);"
        "INSERT INTO probes (run_id, probe, state) VALUES (1, 'accounts', 'active');"
        "INSERT INTO host_metrics (run_id, metric_id, metric, unit, kind, source, last_value) "
        "VALUES (1, 0, 'process_cpu_ns', 'ns', 'counter', 'counter', 5);"
        "INSERT INTO intervals (run_id, start_ns, duration_ns) VALUES (1, 0, 7);"
        "INSERT INTO host_intervals VALUES (1, 0, 0, 4);");
  }
  EXPECT_EQ(Row("SELECT name, deep, level_asked FROM run_summary"), "old|0|");
  EXPECT_EQ(Row("SELECT operator, stage, busy_ns, source, residual_ns FROM operator_summary"),
            "decode|s|70|thread_clock|");
  EXPECT_EQ(Row("SELECT probe, state, affects FROM probe_status"), "accounts|active|");
  EXPECT_EQ(Row("SELECT metric, last_value FROM host_summary"), "process_cpu_ns|5");
  EXPECT_EQ(Row("SELECT metric, start_ns, duration_ns, value FROM host_interval"),
            "process_cpu_ns|0|7|4");
  EXPECT_EQ(Row("PRAGMA user_version"), "1") << "reading upgrades nothing";
  RunStore store(path_);
  EXPECT_EQ(Row("SELECT name, deep, level_asked FROM run_summary"), "old|0|");
  EXPECT_EQ(Row("PRAGMA user_version"), std::to_string(SchemaFiles().size()));
  EXPECT_EQ(Row("PRAGMA integrity_check"), "ok");
  const int64_t run = store.BeginRun(Info("new"));
  store.Append(run, {Interval(0, kSecond)}, Batch(0, kSecond, 2, true));
  EXPECT_EQ(Row("SELECT COUNT(*) FROM measurement_summary"), "2");
  store.RemoveRun(run);
  EXPECT_EQ(Row("SELECT COUNT(*) FROM measurement_summary"), "0");
}

TEST_F(Store, CeilingsOfAMachineAreStoredBesideItsRuns) {
  RunStore store(path_);
  CalibrationInfo info;
  info.hostname = "host";
  info.cpu_model = "cpu";
  info.folder = "/data";
  CeilingRow read{"storage_read_bytes_per_s", "B/s", "", {}, 4096, 32, 3e8, 1e8, 3e8, 3, ""};
  CeilingRow zstd{"decompress_bytes_per_s", "B/s", "zstd", 1, {}, {}, 9e8, 8e8, 9e8, 5, "n"};
  EXPECT_EQ(store.AddCalibration(info, {read, zstd}), 1);
  EXPECT_EQ(store.AddCalibration(info, {read}), 2);
  EXPECT_EQ(Row("SELECT COUNT(*), MAX(calibration_id) FROM calibration_summary"), "3|2");
  EXPECT_EQ(Row("SELECT subject, threads_count, depth_count, value, minimum_value, note, folder "
                "FROM calibration_summary WHERE metric = 'decompress_bytes_per_s'"),
            "zstd|1||9e+08|8e+08|n|/data");
}

// A day at 100 operators: the last quarter of an hour as it is recorded, what is before in the
// steps that the rollup leaves of it; and of 1000 measurements a course a second long.
TEST_F(Store, ADayAtAHundredOperatorsStaysBelow256MiB) {
  RunStore store(path_);
  const int64_t run = store.BeginRun(Info("day"));
  constexpr int64_t kDay = 24 * 3600 * kSecond, kOld = 23 * 3600 * kSecond;
  constexpr int64_t kRecent = kDay - 900 * kSecond;
  std::vector<IntervalSample> batch;
  int64_t rolled = 0, largest = 0, measured_ns = 0;
  for (int64_t t = 0; t < kDay;) {
    const int64_t duration = t < kOld ? 16 * kSecond : t < kRecent ? 2 * kSecond : 250 * kMs;
    batch.push_back(Interval(t, duration, 100));
    // Measurements as the rollup leaves them: 128 s, 16 s, and 1 s in the last ten minutes.
    const int64_t length = t < kOld ? 128 * kSecond : t < kRecent ? 16 * kSecond : kSecond;
    MeasurementBatch measured;
    if (t >= measured_ns) {
      measured = Batch(t, length, 1000, t == 0);
      if (t > 0) measured.totals.clear();  // one row each, whatever the time
      measured_ns = t + length;
    }
    t += duration;
    if (batch.size() == 40 || t >= kDay || !measured.intervals.empty()) {
      store.Append(run, batch, measured);
      batch.clear();
    }
    if (t - rolled >= (t < kOld ? 1800 : 60) * kSecond) {
      store.Rollup(run, t);
      rolled = t;
    }
    struct stat info, log;
    if (stat(path_.c_str(), &info) == 0 && stat((path_ + "-wal").c_str(), &log) == 0) {
      largest = std::max<int64_t>(largest, info.st_size + log.st_size);
    }
  }
  std::printf("largest size of the store: %.1f MiB\n", static_cast<double>(largest) / (1 << 20));
  EXPECT_LT(largest, int64_t{256} << 20);
}

// Statistics of a stored file do not change when a later version opens it: version 1 is the first,
// so the migration from an empty file is all there is.
TEST_F(Store, MigrationIsIdempotent) {
  {
    RunStore store(path_);
    store.Append(store.BeginRun(Info("r")), {Interval(0, kSecond)});
  }
  { RunStore again(path_); }
  EXPECT_EQ(Row("SELECT COUNT(*) FROM operator_summary"), "1");
  ReadStore store(path_);
  EXPECT_EQ(std::get<int64_t>(store.Query("PRAGMA user_version").rows[0][0]),
            static_cast<int64_t>(SchemaFiles().size()));
}

TEST_F(Store, AChangedViewIsReplacedWhenOpened) {
  { RunStore store(path_); }
  {
    Database database(path_, Database::Mode::kReadWrite);
    database.Execute("DROP VIEW loss_summary");
    database.Execute("CREATE VIEW loss_summary AS SELECT 1 AS x");
  }
  ReadStore store(path_);
  EXPECT_EQ(store.Query("SELECT * FROM loss_summary").columns.size(), 4u);
}

TEST_F(Store, DiskFullKeepsWhatWasStored) {
  RunStore store(path_);
  const int64_t run = store.BeginRun(Info("r"));
  store.Append(run, {Interval(0, kSecond, 50)});
  // A page limit gives the same SQLITE_FULL that a full disk does.
  store.database().Execute(
      fmt::format("PRAGMA max_page_count = {}", store.database().Integer("PRAGMA page_count") + 4));
  const Error error = Caught([&] {
    for (int i = 1; i < 1000; i++) store.Append(run, {Interval(i * kSecond, kSecond, 50)});
  });
  EXPECT_EQ(error.code(), ExitCode::kResources);
  EXPECT_THAT(error.what(), HasSubstr("disk full"));
  store.FinishRun(run, RunState::kTruncated);
  EXPECT_EQ(Row("SELECT state FROM run_summary"), "truncated");
  EXPECT_EQ(Row("SELECT (SELECT SUM(busy_ns) FROM operator_interval) = (SELECT SUM(busy_ns) FROM "
                "operator_summary)"),
            "1")
      << "a transaction is whole or absent";
  EXPECT_EQ(Row("PRAGMA integrity_check"), "ok");
}

}  // namespace
}  // namespace headrace::collectors
