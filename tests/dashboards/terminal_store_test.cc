// What headrace top reads: verdicts that another thread makes, and a store while it is written.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <thread>

#include "analysis/run/read_run.h"
#include "base/clock.h"
#include "base/error.h"
#include "collectors/store/store.h"
#include "dashboards/terminal/live_run.h"
#include "dashboards/terminal/top_verdict.h"
#include "tests/collectors/store_fixture.h"
#include "tests/dashboards/top_runs.h"

namespace headrace::dashboards {
namespace {

using analysis::RunView;
using testing::HasSubstr;
using testing::Not;

// ---------------------------------------------------------------- the thread of verdicts

TEST(TopVerdicts, TheLastOneStaysWhileTheNextFails) {
  std::atomic<int> made{0};
  VerdictMaker maker(
      [&] {
        if (++made > 1) throw Error(ExitCode::kBadData, "the store is\x1b[2J gone");
        TopVerdict verdict;
        verdict.title = "first";
        return verdict;
      },
      0);
  EXPECT_EQ(maker.latest(), nullptr);
  maker.Want();
  while (maker.latest() == nullptr) std::this_thread::yield();
  maker.Want();
  while (maker.failure().empty()) std::this_thread::yield();
  EXPECT_EQ(maker.latest()->title, "first");
  EXPECT_THAT(maker.failure(), Not(HasSubstr("\x1b")));
  EXPECT_TRUE(maker.Finish(60 * kSecondNs));
}

TEST(TopVerdicts, TheyAreSpaced) {
  std::atomic<int> made{0};
  VerdictMaker maker(
      [&] {
        ++made;
        return TopVerdict{};
      },
      3600 * kSecondNs);
  maker.Want();
  while (made == 0) std::this_thread::yield();
  for (int i = 0; i < 100; ++i) maker.Want();
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  EXPECT_EQ(made, 1);
}

TEST(TopVerdicts, OfALongRunTheyAreFewUntilItEnds) {
  std::atomic<int> made{0};
  VerdictMaker maker(
      [&] {
        ++made;
        TopVerdict verdict;
        verdict.recorded_ns = 3600 * kSecondNs;
        return verdict;
      },
      0);
  maker.Want();
  while (made == 0) std::this_thread::yield();
  for (int i = 0; i < 100; ++i) maker.Want();
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  EXPECT_EQ(made, 1);
  maker.Want(true);
  while (made == 1) std::this_thread::yield();
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  EXPECT_EQ(made, 2);
}

TEST(TopVerdicts, TheyTakeLittleOfACore) {
  constexpr int64_t kMs = kSecondNs / 1000;
  EXPECT_EQ(BetweenVerdictsNs(60 * kSecondNs, kMs), 15 * kSecondNs) << "a quarter more";
  EXPECT_EQ(BetweenVerdictsNs(3600 * kSecondNs, kMs), 60 * kSecondNs) << "a minute at most";
  for (const int64_t cpu_ms : {10, 100, 400}) {
    const int64_t between_ns = BetweenVerdictsNs(20 * kSecondNs, cpu_ms * kMs);
    EXPECT_LE(static_cast<double>(cpu_ms * kMs), 0.004 * static_cast<double>(between_ns)) << cpu_ms;
  }
  EXPECT_EQ(BetweenVerdictsNs(24 * 3600 * kSecondNs, 5 * kSecondNs), 120 * kSecondNs)
      << "two minutes at most";
}

TEST(TopVerdicts, LeavingDoesNotWaitForALongOne) {
  auto release = std::make_shared<std::atomic<bool>>(false);
  auto begun = std::make_shared<std::atomic<bool>>(false);
  auto ended = std::make_shared<std::atomic<bool>>(false);
  {
    VerdictMaker maker(
        [=] {
          *begun = true;
          while (!*release) std::this_thread::yield();
          *ended = true;
          return TopVerdict{};
        },
        0);
    maker.Want();
    while (!*begun) std::this_thread::yield();
    EXPECT_TRUE(maker.working());
    EXPECT_FALSE(maker.Finish(1'000'000));
  }
  *release = true;
  while (!*ended) std::this_thread::yield();
}

// ---------------------------------------------------------------- a store that is written
// meanwhile

class TopStore : public collectors::StoreFolder {
 protected:
  static collectors::RunInfo Info(const std::string& name) {
    collectors::RunInfo info = StoreFolder::Info(name);
    info.accounting_level = 2;
    info.cores_count = 2;
    return info;
  }

  // An interval of a fifth of a second: decode works for 80 % of it, then waits for input.
  static collectors::IntervalSample Interval(int64_t number) {
    constexpr int64_t kLength = 200'000'000;
    collectors::IntervalSample t;
    t.start_ns = number * kLength;
    t.duration_ns = kLength;
    collectors::StageSample stage;
    stage.id = 0;
    stage.name = "decode";
    stage.parallelism = 1;
    stage.parallelism_ns = stage.observed_ns = stage.lifetime_ns = kLength;
    stage.on_cpu_ns = kLength / 2;
    stage.runnable_ns = 0;
    t.stages.push_back(stage);
    collectors::OperatorSample op;
    op.id = 0;
    op.name = "zstd";
    op.kind = "decompress";
    op.stage_id = 0;
    op.completions = 10;
    op.rows = 640;
    op.busy_ns = 160'000'000;
    op.on_cpu_ns = 100'000'000;
    op.runnable_ns = 0;
    op.wait_in_ns = 40'000'000;
    t.operators.push_back(op);
    t.steps = {10, 640, 50'000'000, 150'000'000, t.start_ns, t.start_ns + kLength, {20'000'000}};
    return t;
  }
};

TEST_F(TopStore, ReadsWhatIsNewAndNothingTwice) {
  collectors::RunStore store(path_);
  const int64_t id = store.BeginRun(Info("live"));
  LiveRun run(path_, id);
  EXPECT_TRUE(run.figures().recording());
  EXPECT_TRUE(run.figures().run.windows.empty());
  int64_t next = 0;
  for (int round = 0; round < 5; ++round) {
    std::vector<collectors::IntervalSample> more;
    for (int i = 0; i <= round; ++i) more.push_back(Interval(next++));
    store.Append(id, more);
    EXPECT_TRUE(run.Read());
    EXPECT_FALSE(run.Read()) << "nothing is new";
    ASSERT_EQ(run.figures().run.windows.size(), static_cast<size_t>(next));
  }
  // The same windows as who reads the whole run.
  const RunView whole = analysis::LoadRun(path_, std::to_string(id));
  ASSERT_EQ(whole.windows.size(), run.figures().run.windows.size());
  for (size_t i = 0; i < whole.windows.size(); ++i) {
    const analysis::WindowRow &a = whole.windows[i], &b = run.figures().run.windows[i];
    EXPECT_EQ(a.start_ns, b.start_ns);
    EXPECT_EQ(a.operators[0].busy_ns, b.operators[0].busy_ns);
    EXPECT_EQ(a.operators[0].on_cpu_ns, b.operators[0].on_cpu_ns);
    EXPECT_EQ(a.operators[0].blocked_ns, b.operators[0].blocked_ns);
    EXPECT_EQ(a.stages[0].lifetime_ns, b.stages[0].lifetime_ns);
    EXPECT_EQ(a.steps.wait_ns, b.steps.wait_ns);
  }
  const TopModel model = MakeTopModel(run.figures(), nullptr, kSecondNs);
  EXPECT_EQ(model.window_ns, kSecondNs);
  EXPECT_NEAR(*model.stages[0].shares.busy, 0.8, 1e-9);
  EXPECT_NEAR(*model.wait_ratio, 0.25, 1e-9);
  EXPECT_NEAR(*model.rows_per_s, 3200, 1e-6);
  store.FinishRun(id, collectors::RunState::kComplete);
  EXPECT_TRUE(run.Read());
  EXPECT_FALSE(run.figures().recording());
}

TEST_F(TopStore, AStageThatAppearsLaterIsShown) {
  collectors::RunStore store(path_);
  const int64_t id = store.BeginRun(Info("live"));
  store.Append(id, {Interval(0)});
  LiveRun run(path_, id);
  ASSERT_EQ(run.figures().run.stages.size(), 1u);
  collectors::IntervalSample more = Interval(1);
  collectors::StageSample late = more.stages[0];
  late.id = 1;
  late.name = "late";
  late.index = 1;
  more.stages.push_back(late);
  store.Append(id, {more});
  EXPECT_TRUE(run.Read());
  ASSERT_EQ(run.figures().run.stages.size(), 2u);
  EXPECT_EQ(run.figures().run.windows.size(), 2u);
  const TopModel model = MakeTopModel(run.figures(), nullptr, kSecondNs);
  EXPECT_EQ(model.stages[1].name, "late");
}

TEST_F(TopStore, KeepsTheEndOfALongRunOnly) {
  collectors::RunStore store(path_);
  const int64_t id = store.BeginRun(Info("long"));
  std::vector<collectors::IntervalSample> all;
  for (int64_t i = 0; i < 1500; ++i) all.push_back(Interval(i));  // five minutes
  store.Append(id, all);
  LiveRun run(path_, id);
  EXPECT_EQ(run.figures().run.windows.size(), 600u);
  EXPECT_EQ(run.figures().run.windows.back().start_ns, Interval(1499).start_ns);
  store.Append(id, {Interval(1500)});
  EXPECT_TRUE(run.Read());
  EXPECT_EQ(run.figures().run.windows.size(), 600u);
}

// A device is read every second or more seldom, and its use stored with the interval that it was
// read in.
TEST_F(TopStore, WhatIsReadSeldomIsSeenOnceHoweverOftenOneLooks) {
  collectors::RunStore store(path_);
  const int64_t id = store.BeginRun(Info("seldom"));
  LiveRun run(path_, id);
  constexpr int64_t kEach = 5;  // intervals
  for (int64_t i = 0; i < 20; ++i) {
    collectors::MeasurementBatch batch;
    if (i == 0) {
      batch.metrics.push_back({"gpu_use_ratio", "ratio", "gauge", "nvml", "", "h"});
      collectors::MeasurementRow row;
      row.metric = "gpu_use_ratio";
      row.source = "nvml";
      row.subject = "gpu0";
      row.cause = "compute";
      batch.definitions.push_back(row);
    }
    if (i % kEach == kEach - 1) {
      const int64_t end_ns = Interval(i + 1).start_ns, from_ns = Interval(i + 1 - kEach).start_ns;
      batch.intervals.push_back({0, from_ns, end_ns - from_ns, 0.5});
      batch.totals.push_back({0, end_ns, 0.5 * static_cast<double>(end_ns), 0.5, 0.5, 0.5, {}});
    }
    store.Append(id, {Interval(i)}, batch);
    run.Read();
  }
  const auto& courses = run.figures().courses;
  ASSERT_TRUE(courses.contains(MachineFigure::kAccelerator));
  EXPECT_EQ(courses.at(MachineFigure::kAccelerator).size(), 20u / kEach);
}

// Pressure is read apart from the windows: a short one may be given more than its own time.
TEST_F(TopStore, NobodyWaitsForMoreThanAllOfTheTime) {
  collectors::RunStore store(path_);
  const int64_t id = store.BeginRun(Info("short"));
  collectors::MeasurementBatch batch;
  batch.metrics.push_back({"pressure_ns", "ns", "counter", "counter", "", "h"});
  collectors::MeasurementRow row;
  row.metric = "pressure_ns";
  row.source = "counter";
  row.cause = "cpu some";
  batch.definitions.push_back(row);
  batch.totals.push_back({0, kSecondNs, 4e8, 4e8, 4e8, 4e8, {}});
  for (int64_t i = 0; i < 5; ++i)
    batch.intervals.push_back({0, Interval(i).start_ns, Interval(i).duration_ns, 3e8});
  store.Append(id, {Interval(0), Interval(1), Interval(2), Interval(3), Interval(4)}, batch);
  const LiveRun run(path_, id);
  const TopModel model = MakeTopModel(run.figures(), nullptr, kSecondNs);
  for (const TopTrend& trend : model.trends) {
    if (trend.title != "some task waits for a core") continue;
    EXPECT_EQ(trend.last, "100 %");
    return;
  }
  FAIL() << "no pressure is shown";
}

TEST_F(TopStore, WhichRunIsMeant) {
  EXPECT_THROW(ChooseLiveRun(path_, ""), Error);
  collectors::RunStore store(path_);
  EXPECT_THROW(ChooseLiveRun(path_, ""), Error);
  const int64_t first = store.BeginRun(Info("first"));
  store.FinishRun(first, collectors::RunState::kComplete);
  EXPECT_EQ(ChooseLiveRun(path_, "").run_id, first);
  EXPECT_THAT(ChooseLiveRun(path_, "").note, HasSubstr("No run is being recorded"));
  const int64_t second = store.BeginRun(Info("second"));
  const int64_t third = store.BeginRun(Info("third"));
  store.FinishRun(third, collectors::RunState::kComplete);
  EXPECT_EQ(ChooseLiveRun(path_, "").run_id, second) << "the one that is being recorded";
  EXPECT_EQ(ChooseLiveRun(path_, "").note, "");
  EXPECT_EQ(ChooseLiveRun(path_, "latest").run_id, third);
  EXPECT_EQ(ChooseLiveRun(path_, "first").run_id, first);
  EXPECT_EQ(ChooseLiveRun(path_, std::to_string(second)).run_id, second);
  EXPECT_THROW(ChooseLiveRun(path_, "nobody"), Error);
}

TEST_F(TopStore, ARunThatIsRemovedIsAnErrorAndTheViewStays) {
  collectors::RunStore store(path_);
  const int64_t id = store.BeginRun(Info("gone"));
  store.Append(id, {Interval(0)});
  LiveRun run(path_, id);
  store.FinishRun(id, collectors::RunState::kComplete);
  store.RemoveRun(id);
  EXPECT_THROW(run.Read(), Error);
  EXPECT_EQ(run.figures().run.windows.size(), 1u);
}

}  // namespace
}  // namespace headrace::dashboards
