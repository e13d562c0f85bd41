#include "analysis/run/run_figures.h"

#include <gtest/gtest.h>

namespace headrace::analysis {
namespace {

// `windows` of 200 ms with 20 steps of 8 rows, 40 % of the time waited, 100 ms CPU.
RunView Steady(size_t windows) {
  RunView run;
  run.stages.emplace_back().name = "work";
  run.operators.emplace_back().name = "spin";
  run.operators.back().stage = "work";
  for (size_t i = 0; i < windows; ++i) {
    WindowRow& window = run.windows.emplace_back();
    window.start_ns = static_cast<int64_t>(i) * 200'000'000;
    window.duration_ns = 200'000'000;
    window.operators.resize(1);
    window.stages.resize(1);
    window.stages[0].lifetime_ns = window.duration_ns;
    window.stages[0].on_cpu_ns = 100'000'000;
    window.steps = {20, 160, 80'000'000, 120'000'000};
    run.steps.steps_count += 20;
    run.steps.rows_count += 160;
  }
  run.run.duration_ns = static_cast<int64_t>(windows) * 200'000'000;
  return run;
}

TEST(RunFigures, OfTheSteadyPhase) {
  RunView run = Steady(30);
  run.windows[0].steps = {};  // the start gives no rows and is no part of the rate
  const RunFigures figures = FiguresOf(run);
  EXPECT_NEAR(*figures.Of(Figure::kRowsPerSecond), 800, 1e-9);
  EXPECT_NEAR(*figures.Of(Figure::kWait), 0.4, 1e-12);
  EXPECT_NEAR(*figures.Of(Figure::kCpuPerRow), 0.1 / 160, 1e-12);
  EXPECT_GT(figures.steady_windows, 5u);
  EXPECT_GT(figures.steady_first_ns, 0);
  EXPECT_NEAR(*figures.Of(Figure::kElapsed), 6, 1e-12);
}

TEST(RunFigures, WhatWasNotMeasuredIsNamedAndNeverZero) {
  const RunFigures empty = FiguresOf(RunView());
  for (size_t i = 0; i < kFigures; ++i) {
    const auto figure = static_cast<Figure>(i);
    if (figure == Figure::kElapsed) continue;
    EXPECT_FALSE(empty.Of(figure)) << InfoOf(figure).key;
    EXPECT_FALSE(empty.ReasonOf(figure).empty()) << InfoOf(figure).key;
  }
  RunView run = Steady(30);
  for (WindowRow& window : run.windows) window.stages[0].on_cpu_ns.reset();
  EXPECT_FALSE(FiguresOf(run).Of(Figure::kCpuPerRow));  // nor from operators, which have none
}

TEST(RunFigures, BlocksCoverTheSteadyPhaseOnce) {
  const RunView run = Steady(130);  // 26 s
  const std::vector<RunFigures> blocks = BlocksOf(run, 5'000'000'000);
  ASSERT_EQ(blocks.size(), 5u);  // the rest of under half a block joined the last
  size_t windows = 0;
  for (const RunFigures& block : blocks) {
    windows += block.steady_windows;
    EXPECT_NEAR(*block.Of(Figure::kRowsPerSecond), 800, 1e-9);
    EXPECT_FALSE(block.Of(Figure::kPeakRss));
  }
  EXPECT_EQ(windows, FiguresOf(run).steady_windows);
  EXPECT_TRUE(BlocksOf(RunView(), 5'000'000'000).empty());
}

TEST(RunFigures, KeysAreUniqueAndFound) {
  for (size_t i = 0; i < kFigures; ++i) {
    const auto figure = static_cast<Figure>(i);
    EXPECT_EQ(FigureByKey(InfoOf(figure).key), figure);
  }
  EXPECT_FALSE(FigureByKey("rows"));
}

}  // namespace
}  // namespace headrace::analysis
