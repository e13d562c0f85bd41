// What the store keeps of a table's layout, of threads over time and of moments that were marked.
#include <gtest/gtest.h>

#include "base/clock.h"
#include "base/error.h"
#include "collectors/store/store.h"
#include "tests/collectors/store_fixture.h"

namespace headrace::collectors {
namespace {

TEST_F(Store, LayoutsAreCopiedAndRemovedWithTheirRun) {
  RunStore store(path_);
  const int64_t run = store.BeginRun(Info("r"));
  LayoutRows layout;
  layout.stripes_count = 3;
  layout.detailed_stripes_count = 1;
  layout.stored_features_count = 9;
  layout.used_features_count = 4;
  layout.stored_features_bytes = 60;
  layout.used_features_bytes = 40;
  layout.stripes = {{0, "a.dwrf", 3, 100, 7, 4, 2, 40, 20, 2}};
  layout.streams = {{0, 3, 60, "data", "sparse", "17", 2, 40, 20},
                    {0, 63, 40, "none", "", "", 0, 0, 0}};
  layout.reads = {{0, 3, 30, 20}, {0, 33, 30, 20}};
  store.SetLayout(run, layout);
  store.SetLayout(run, layout);  // again: in its place
  store.FinishRun(run, RunState::kComplete);
  store.CopyRun(run, folder_ + "/copy.db");
  const std::string streams =
      "SELECT offset_bytes, area, column_name, feature_key, skipped_bytes FROM layout_stream ORDER "
      "BY offset_bytes";
  EXPECT_EQ(Row(streams), "3|data|sparse|17|0\n63|none|||40");
  EXPECT_EQ(Row("SELECT stripes_count, known_stripes_count, stored_bytes, skipped_bytes, "
                "reads_count, reason IS NULL, detailed_stripes_count, stored_features_count, "
                "used_features_count, stored_features_bytes, used_features_bytes FROM "
                "layout_summary"),
            "3|1|100|40|2|1|1|9|4|60|40");
  store.RemoveRun(run);
  for (const char* view : {"layout_summary", "layout_stripe", "layout_stream", "layout_read"})
    EXPECT_EQ(Row(std::string("SELECT COUNT(*) FROM ") + view), "0") << view;
  path_ = folder_ + "/copy.db";
  EXPECT_EQ(Row(streams), "3|data|sparse|17|0\n63|none|||40");
  EXPECT_EQ(Row("SELECT SUM(read_bytes), SUM(wanted_bytes) FROM layout_read"), "60|40");
}

TEST_F(Store, MarksAreOfMomentsOfARecording) {
  RunStore store(path_);
  RunInfo info = Info("r");
  info.started_realtime_ns = RealtimeNs() - 5 * kSecond;
  const int64_t run = store.BeginRun(info);
  const int64_t at = store.AddMark(run, "mark 1");
  EXPECT_GE(at, 5 * kSecond);
  EXPECT_LT(at, 3600 * kSecond);
  EXPECT_EQ(Row("SELECT text FROM run_mark WHERE at_ns = " + std::to_string(at)), "mark 1");
  store.FinishRun(run, RunState::kComplete);
  const Error late = Caught([&] { store.AddMark(run, "late"); });
  EXPECT_EQ(late.code(), ExitCode::kUsage);
  EXPECT_EQ(late.where(), "run " + std::to_string(run));
  EXPECT_EQ(Row("SELECT COUNT(*) FROM run_mark"), "1");
}

TEST_F(Store, SingleStepsAreKeptWithFullDetailAlone) {
  RunStore store(path_);
  const int64_t run = store.BeginRun(Info("r"));
  IntervalSample first = Interval(0, kSecond), second = Interval(kSecond, kSecond);
  first.steps.records = {{40 * kMs, 10 * kMs, 5 * kMs, 64}};
  second.steps.records = {{1100 * kMs, 30 * kMs, 20 * kMs, 64}, {1100 * kMs, 1, 2, 3}};
  store.Append(run, {first}, {}, AppendPart::kCourse);
  store.Append(run, {second}, {}, AppendPart::kDetail);
  EXPECT_EQ(Row("SELECT begin_ns, wait_ns, compute_ns, rows_count FROM step_record ORDER BY "
                "begin_ns"),
            "1050000000|30000000|20000000|64\n1099999997|1|2|3");
  const DetailRange range{kSecond, 2 * kSecond, "slow"};
  store.SetDetailRange(run, range);
  store.ReleaseDetailRange(run, range);
  EXPECT_EQ(Row("SELECT COUNT(*) FROM step_record"), "0") << "they go with the detail";
  store.RemoveRun(run);
  EXPECT_EQ(Row("SELECT COUNT(*) FROM step_record"), "0");
}

TEST_F(Store, ThreadsHaveACourse) {
  RunStore store(path_);
  const int64_t run = store.BeginRun(Info("r"));
  MeasurementBatch batch;
  batch.processes.push_back({0, 4242, 1, "p", "p", "root", 1, 0, {}, "", {}});
  int64_t id = 0;
  const auto add = [&](const char* metric, const char* unit, const char* cause, double value,
                       const char* kind = "counter", int64_t start = 0) {
    batch.metrics.push_back({metric, unit, kind, "counter", "", "h"});
    MeasurementRow row;
    row.id = id++;
    row.metric = metric;
    row.source = "counter";
    row.process_id = 0;
    row.thread = "decode";
    row.cause = cause;
    batch.totals.push_back({row.id, kSecond, value, value, value, value, {}});
    batch.intervals.push_back({row.id, start, kSecond, value});
    if (metric == std::string("threads_count")) {
      batch.intervals.push_back({row.id, start + kSecond, kSecond, value + 1});
    }
    if (metric == std::string("thread_on_cpu_ns")) {
      batch.intervals.push_back({row.id, kSecond + 1'000'000, kSecond - 1'000'000, value + 1});
      batch.intervals.push_back({row.id, 3 * kSecond, kSecond, value + 2});
    }
    batch.definitions.push_back(std::move(row));
  };
  // Gauges begin a little later than counters.
  add("threads_count", "count", "", 2, "gauge", 9'000'000);
  add("thread_on_cpu_ns", "ns", "", 300);
  add("thread_runnable_ns", "ns", "", 20);
  add("thread_switches_count", "count", "voluntary", 4);
  add("thread_switches_count", "count", "involuntary", 5);
  add("on_cpu_ns", "ns", "", 999);  // of another source
  store.Append(run, {Interval(0, kSecond)}, batch);
  EXPECT_EQ(Row("SELECT start_ns, duration_ns, pid, thread, threads_count, on_cpu_ns, runnable_ns, "
                "voluntary_switches_count, involuntary_switches_count FROM thread_interval "
                "ORDER BY start_ns"),
            "0|1000000000|4242|decode|2|300|20|4|5\n"
            "1001000000|999000000|4242|decode|3|301|||\n"
            "3000000000|1000000000|4242|decode||302|||")
      << "one row where a counter grew, and no number of what was not measured";
}

}  // namespace
}  // namespace headrace::collectors
