// The windows that analysis reads against the rows of the documented views.
#include "analysis/run/read_windows.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <map>
#include <string>
#include <vector>

#include "analysis/run/counter_sums.h"
#include "analysis/run/read_run.h"
#include "analysis/run/view_columns.h"
#include "analysis/statistics/statistics.h"
#include "collectors/store/store.h"
#include "tests/collectors/store_fixture.h"

namespace headrace::analysis {
namespace {

using collectors::IntervalSample;
using collectors::OperatorSample;

constexpr int64_t kStepNs = 250'000'000;

uint64_t WindowsSeed() {
  const char* given = std::getenv("HEADRACE_SEED");
  return given != nullptr ? std::strtoull(given, nullptr, 10) : 20261127;
}

class ReadWindowsTest : public collectors::StoreFolder {
 protected:
  // What an operator did in an interval: c and q exact, between bounds, or not measured.
  static OperatorSample MadeUp(int64_t index, Random* random) {
    OperatorSample op;
    op.id = 3 * index + 1;
    op.name = fmt::format("op{}", index);
    op.kind = "decode";
    op.position = index;
    op.completions = static_cast<int64_t>(random->Below(20));
    op.rows = op.completions * 64;
    op.in_bytes = static_cast<int64_t>(random->Below(1 << 20));
    op.out_bytes = static_cast<int64_t>(random->Below(1 << 20));
    op.busy_ns = static_cast<int64_t>(random->Below(kStepNs));
    op.lock_wait_ns = op.busy_ns / 50;
    op.wait_in_ns = static_cast<int64_t>(random->Below(kStepNs));
    op.wait_out_ns = static_cast<int64_t>(random->Below(kStepNs));
    op.enters = op.completions;
    const int64_t on_cpu_ns = op.busy_ns / 10 * static_cast<int64_t>(random->Below(11));
    const uint64_t kind = random->Below(10);
    if (kind == 0) return op;
    op.on_cpu_ns = on_cpu_ns;
    op.runnable_ns = static_cast<int64_t>(random->Below(static_cast<uint64_t>(op.busy_ns) + 1));
    if (kind < 4) return op;
    const auto spread = static_cast<int64_t>(random->Below(kStepNs / 5));
    op.on_cpu_low_ns = on_cpu_ns - spread / 2;
    op.on_cpu_high_ns = on_cpu_ns + spread / 3;
    op.runnable_low_ns = *op.runnable_ns - spread / 4;
    op.runnable_high_ns = *op.runnable_ns + spread / 5;
    return op;
  }

  // A run of so many intervals. Operators are idle now and then; there are two stages.
  void Record(size_t intervals, int64_t operators, Random* random) {
    collectors::RunStore store(path_);
    const int64_t run = store.BeginRun(Info("made up"));
    std::vector<IntervalSample> course;
    for (size_t i = 0; i < intervals; ++i) {
      IntervalSample t;
      t.start_ns = static_cast<int64_t>(i) * kStepNs;
      t.duration_ns = kStepNs;
      for (int64_t stage = 0; stage < 2; ++stage) {
        if (random->Below(8) == 0) continue;
        collectors::StageSample s;
        s.id = stage;
        s.name = stage == 0 ? "fetch" : "decode";
        s.index = stage;
        s.parallelism = 1 + static_cast<int64_t>(random->Below(4));
        s.parallelism_ns = s.parallelism * kStepNs;
        s.observed_ns = kStepNs;
        s.lifetime_ns = s.parallelism * kStepNs;
        s.on_cpu_ns = static_cast<int64_t>(random->Below(kStepNs));
        s.runnable_ns = 1000;
        t.stages.push_back(s);
      }
      for (int64_t o = 0; o < operators; ++o) {
        if (random->Below(4) == 0) continue;
        t.operators.push_back(MadeUp(o, random));
        t.operators.back().stage_id = o % 2;
      }
      const auto occupied = static_cast<int64_t>(random->Below(kStepNs));
      t.queues.push_back(
          {0, "ready", 0, 1, 4, kStepNs, occupied, 4 * kStepNs, occupied / 3, occupied / 7, 10, 9});
      t.resources.push_back({0, "table", "lock", 1, 3, occupied / 9, occupied / 8, 0});
      const auto steps = 1 + static_cast<int64_t>(random->Below(5));
      t.steps = {steps, 64 * steps, kStepNs / 3, kStepNs / 2, t.start_ns, t.start_ns + kStepNs, {}};
      course.push_back(std::move(t));
    }
    store.Append(run, course);
    store.FinishRun(run, collectors::RunState::kComplete);
  }

  // The rows of operator_interval by start and operator.
  std::map<std::pair<int64_t, std::string>, OperatorCounters> OperatorRows() {
    std::map<std::pair<int64_t, std::string>, OperatorCounters> rows;
    RunDatabase database(path_);
    database.EachOf("operator_interval", 1, "", [&](const ViewRow& row) {
      rows[{row.Number("start_ns"), row.Text("operator")}] = ReadOperatorCounters(row);
    });
    return rows;
  }
};

// The members of both, with their names where they differ.
std::string Differences(const OperatorCounters& a, const OperatorCounters& b) {
  std::string text;
  const auto shown = [](const Count& count) {
    return count ? std::to_string(*count) : std::string("none");
  };
  const auto look = [&](const char* name, const Count& x, const Count& y) {
    if (x != y) text += fmt::format("{}: {} and {}; ", name, shown(x), shown(y));
  };
#define HR_OPERATOR_COUNTER(type, member, column, help) look(#column, a.column, b.column);
#include "collectors/store/columns.def"
  look("blocked_ns", a.blocked_ns, b.blocked_ns);
  look("blocked_low_ns", a.blocked_low_ns, b.blocked_low_ns);
  look("blocked_high_ns", a.blocked_high_ns, b.blocked_high_ns);
  return text;
}

TEST_F(ReadWindowsTest, AShortRunHasTheRowsOfItsIntervalViews) {
  const uint64_t seed = WindowsSeed();
  SCOPED_TRACE(fmt::format("HEADRACE_SEED={}", seed));
  Random random(seed);
  Record(60, 7, &random);
  const RunView run = LoadRun(path_, "1");
  auto rows = OperatorRows();
  ASSERT_EQ(run.windows.size(), 60u);
  ASSERT_EQ(run.operators.size(), 7u);
  size_t known = 0, open = 0;
  for (const WindowRow& window : run.windows) {
    ASSERT_EQ(window.operators.size(), 7u);
    for (size_t i = 0; i < 7; ++i) {
      const auto row = rows.find({window.start_ns, run.operators[i].name});
      if (row == rows.end()) {
        EXPECT_EQ(window.operators[i].busy_ns, 0);
        continue;
      }
      EXPECT_EQ(Differences(window.operators[i], row->second), "")
          << row->first.second << " at " << window.start_ns;
      ++(row->second.on_cpu_ns ? known : open);
      rows.erase(row);
    }
  }
  EXPECT_TRUE(rows.empty());
  EXPECT_GT(known, 30u);
  EXPECT_GT(open, 30u);
  RunDatabase database(path_);
  size_t seen = 0;
  database.EachOf("stage_interval", 1, "", [&](const ViewRow& row) {
    const WindowRow& window = run.windows[static_cast<size_t>(row.Number("start_ns") / kStepNs)];
    const StageCounters& stage = window.stages[static_cast<size_t>(row.Number("stage_index"))];
    EXPECT_EQ(stage.parallelism_count, row.Real("parallelism_count"));
    EXPECT_EQ(stage.on_cpu_ns, row.Integer("on_cpu_ns"));
    ++seen;
  });
  EXPECT_GT(seen, 60u);
  database.EachOf("queue_interval", 1, "", [&](const ViewRow& row) {
    const WindowRow& window = run.windows[static_cast<size_t>(row.Number("start_ns") / kStepNs)];
    EXPECT_EQ(window.queues[0].mean_occupancy_ratio, row.Real("mean_occupancy_ratio"));
  });
}

TEST_F(ReadWindowsTest, ALongRunIsReadInFewerWindowsWithTheSameSums) {
  const uint64_t seed = WindowsSeed();
  SCOPED_TRACE(fmt::format("HEADRACE_SEED={}", seed));
  Random random(seed);
  constexpr size_t kIntervals = 5000;
  Record(kIntervals, 3, &random);
  const RunView run = LoadRun(path_, "1");
  EXPECT_LE(run.windows.size(), 2048u);
  EXPECT_GE(run.windows.size(), 1024u);
  std::vector<OperatorCounters> sums(run.operators.size());
  int64_t ns = 0, steps = 0, wait_ns = 0, lifetime_ns = 0, puts = 0, hold_ns = 0;
  double occupancy = 0, threads_ns = 0;
  for (const WindowRow& window : run.windows) {
    EXPECT_EQ(window.start_ns, ns) << "one behind the other";
    ns += window.duration_ns;
    steps += window.steps.steps_count;
    wait_ns += window.steps.wait_ns;
    for (size_t i = 0; i < sums.size(); ++i)
      Add(&sums[i], window.operators[i], &window == &run.windows[0]);
    lifetime_ns += window.stages[1].lifetime_ns;
    threads_ns += window.stages[1].parallelism_count * static_cast<double>(window.duration_ns);
    puts += window.queues[0].puts_count;
    occupancy +=
        window.queues[0].mean_occupancy_ratio.value() * static_cast<double>(window.duration_ns);
    hold_ns += window.resources[0].hold_ns;
  }
  EXPECT_EQ(ns, static_cast<int64_t>(kIntervals) * kStepNs);
  EXPECT_EQ(steps, run.steps.steps_count);
  EXPECT_EQ(wait_ns, run.steps.wait_ns);
  EXPECT_EQ(puts, run.queues[0].puts_count);
  EXPECT_EQ(hold_ns, run.resources[0].hold_ns);
  EXPECT_EQ(lifetime_ns, run.stages[1].lifetime_ns);
  for (size_t i = 0; i < sums.size(); ++i) {
    const OperatorRow& whole = run.operators[i];
    EXPECT_EQ(sums[i].completions_count, whole.completions_count);
    EXPECT_EQ(sums[i].busy_ns, whole.busy_ns);
    EXPECT_EQ(sums[i].wait_out_ns, whole.wait_out_ns);
    EXPECT_EQ(sums[i].enters_count, whole.enters_count);
  }
  EXPECT_NEAR(occupancy / static_cast<double>(ns), run.queues[0].mean_occupancy_ratio.value(),
              1e-9);
  // In seven of eight intervals there is a row of the stage: the mean is over those.
  EXPECT_NEAR(threads_ns / static_cast<double>(ns), run.stages[1].parallelism_count, 0.05);
}

TEST_F(ReadWindowsTest, WhatIsAskedForInDetailStaysAsItWasStored) {
  Random random(7);
  Record(5000, 2, &random);
  const RunTimes detail{1000 * kStepNs, 1400 * kStepNs};
  const RunView run = LoadRun(path_, "1", detail);
  size_t within = 0;
  for (const WindowRow& window : run.windows) {
    const int64_t end_ns = window.start_ns + window.duration_ns;
    EXPECT_TRUE(end_ns <= detail.start_ns || window.start_ns >= detail.start_ns) << window.start_ns;
    EXPECT_TRUE(end_ns <= detail.end_ns || window.start_ns >= detail.end_ns) << window.start_ns;
    if (window.start_ns < detail.start_ns || end_ns > detail.end_ns) continue;
    EXPECT_EQ(window.duration_ns, kStepNs);
    ++within;
  }
  EXPECT_EQ(within, 400u);
  EXPECT_LT(run.windows.size(), 400u + 2 * 2048u);
  RunTimes times = detail;
  EXPECT_EQ(PartOf(run, &times).windows.size(), 400u);
  EXPECT_EQ(times.start_ns, detail.start_ns);
  EXPECT_EQ(times.end_ns, detail.end_ns);
}

// A file may come from anyone: its table need not have our key, and so no order.
TEST_F(ReadWindowsTest, RowsInAnyOrderAreReadAlike) {
  const uint64_t seed = WindowsSeed();
  SCOPED_TRACE(fmt::format("HEADRACE_SEED={}", seed));
  Random random(seed);
  Record(300, 5, &random);
  const RunView before = LoadRun(path_, "1");
  {
    collectors::Database database(path_, collectors::Database::Mode::kReadWrite);
    database.Execute(
        "PRAGMA foreign_keys = OFF; PRAGMA legacy_alter_table = ON; CREATE TABLE shuffled AS "
        "SELECT * FROM operator_intervals "
        "ORDER BY start_ns * 7919 % 1000003, operator_id DESC; DROP TABLE operator_intervals; "
        "ALTER TABLE shuffled RENAME TO operator_intervals");
  }
  const RunView after = LoadRun(path_, "1");
  ASSERT_EQ(after.windows.size(), before.windows.size());
  size_t busy = 0;
  for (size_t w = 0; w < before.windows.size(); ++w) {
    for (size_t i = 0; i < before.operators.size(); ++i) {
      const OperatorCounters& op = before.windows[w].operators[i];
      EXPECT_EQ(Differences(op, after.windows[w].operators[i]), "") << w << ", " << i;
      busy += op.busy_ns > 0;
    }
  }
  EXPECT_GT(busy, 500u);
}

TEST_F(ReadWindowsTest, WhatOneIntervalLeavesOpenIsToldApartInAWindowOfMany) {
  collectors::RunStore store(path_);
  const int64_t run_id = store.BeginRun(Info("open"));
  constexpr int64_t kIntervals = 4096;
  std::vector<IntervalSample> course;
  for (int64_t i = 0; i < kIntervals; ++i) {
    IntervalSample t;
    t.start_ns = i * kStepNs;
    t.duration_ns = kStepNs;
    OperatorSample op;
    op.name = "decode";
    op.completions = 1;
    op.busy_ns = kStepNs;
    op.on_cpu_ns = kStepNs / 2;
    op.runnable_ns = 0;
    // Every other interval has bounds that are too far apart for c, by a little.
    const int64_t apart_ns = i % 2 == 0 ? kStepNs / 9 : 0;
    op.on_cpu_low_ns = kStepNs / 2 - apart_ns / 2;
    op.on_cpu_high_ns = *op.on_cpu_low_ns + apart_ns;
    op.runnable_low_ns = op.runnable_high_ns = 0;
    t.operators.push_back(op);
    course.push_back(std::move(t));
  }
  store.Append(run_id, course);
  store.FinishRun(run_id, collectors::RunState::kComplete);
  const RunView run = LoadRun(path_, "1");
  ASSERT_EQ(run.operators.size(), 1u);
  size_t merged = 0;
  for (const WindowRow& window : run.windows) {
    if (window.duration_ns == kStepNs) continue;
    ++merged;
    EXPECT_TRUE(window.operators[0].on_cpu_ns.has_value()) << window.start_ns;
  }
  EXPECT_GT(merged, 1000u);
  EXPECT_FALSE(OperatorRows()[std::pair(int64_t{0}, std::string("decode"))].on_cpu_ns.has_value());
}

}  // namespace
}  // namespace headrace::analysis
