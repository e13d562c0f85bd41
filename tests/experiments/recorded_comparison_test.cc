// Comparisons of recorded runs: what two parts of one run say about one another.
#include "experiments/recorded_comparison.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "analysis/run/run_slice.h"
#include "base/error.h"
#include "dashboards/render/render.h"
#include "tests/analysis/synthetic_run.h"

namespace headrace::experiments {
namespace {

using analysis::RunTimes;
using analysis::RunView;
using testing::HasSubstr;
using testing::Not;

constexpr int64_t kHalfNs = 24'000'000'000;

RunView HalfOfRun(double parse_s, uint64_t seed) {
  analysis::SimulatedPipeline pipeline;
  pipeline.cores = 4;
  pipeline.consumer_s = 0.002;
  for (const double cpu_s : {0.004, parse_s}) {
    analysis::SimulatedStage stage{pipeline.stages.empty() ? "load" : "parse", 1, 4, {}};
    stage.operators.emplace_back();
    stage.operators.back().name = stage.name;
    stage.operators.back().cpu_s = cpu_s;
    stage.operators.back().cv = 0.3;
    pipeline.stages.push_back(stage);
  }
  return analysis::Record(pipeline, static_cast<double>(kHalfNs) * 1e-9, seed);
}

// A run of 48 s in which `parse` takes `before_s`, then `after_s` for a batch.
RunView RunThatChanges(double before_s, double after_s, uint64_t seed) {
  RunView run = HalfOfRun(before_s, seed);
  for (analysis::WindowRow window : HalfOfRun(after_s, seed + 1).windows) {
    window.start_ns += kHalfNs;
    run.windows.push_back(window);
  }
  run.run.duration_ns = 2 * kHalfNs;
  return run;
}

dashboards::ComparisonPage ComparedHalves(const RunView& run) {
  dashboards::ComparedRuns runs;
  runs.a_times = RunTimes{0, kHalfNs};
  runs.b_times = RunTimes{kHalfNs, 2 * kHalfNs};
  runs.a.push_back(analysis::PartOf(run, &*runs.a_times));
  runs.b.push_back(analysis::PartOf(run, &*runs.b_times));
  RecordedOptions options;
  options.a = "1@-24s";
  options.b = "1@24s-";
  options.program = "headrace";
  return CompareRecorded(runs, options);
}

TEST(PartsOfARun, SayWhatChangedWhatLimitsEachAndThatItIsNoCause) {
  const dashboards::ComparisonPage page = ComparedHalves(RunThatChanges(0.003, 0.006, 7));
  const std::string text = dashboards::RenderText(dashboards::MakeComparisonReport(page), {});
  EXPECT_THAT(text, HasSubstr("VERDICT  B is slower: -3")) << "6 ms instead of 4";
  EXPECT_THAT(text, HasSubstr("parts of one run"));
  EXPECT_THAT(text, HasSubstr("LIMIT    of A: load (probability"));
  EXPECT_THAT(text, HasSubstr("; of B: parse (probability"));
  EXPECT_THAT(page.notes.why, HasSubstr("parse"));
  EXPECT_THAT(page.notes.why, Not(HasSubstr("load")));
  EXPECT_THAT(text, HasSubstr("headrace report 1 --since 24.000s --until 48"));
  // Of the whole run alone, which would be the same on both sides.
  EXPECT_EQ(page.comparison.Find(analysis::Figure::kPeakRss), nullptr);
  EXPECT_GT(page.input.b.samples[0].figures.steady_first_ns, kHalfNs) << "since the run began";
}

TEST(PartsOfARun, WithoutAChangeSeldomDiffer) {
  constexpr uint64_t kRuns = 40;
  std::string alarms;
  int count = 0;
  for (uint64_t seed = 1; seed <= kRuns; ++seed) {
    const auto verdict =
        ComparedHalves(RunThatChanges(0.004, 0.004, 100 * seed)).comparison.metrics[0].verdict;
    if (verdict == analysis::ChangeVerdict::kSame ||
        verdict == analysis::ChangeVerdict::kCannotTell)
      continue;
    ++count;
    alarms += " " + std::to_string(100 * seed);
  }
  EXPECT_LE(count, 4) << "seeds" << alarms;  // 5 % of 40 are 2; over 4 happen in one of twenty
}

TEST(PartsOfARun, AreOfTheIntervalsBetweenTheirTimes) {
  const RunView run = RunThatChanges(0.003, 0.006, 3);  // in intervals of half a second
  RunTimes times{700'000'000, 2'200'000'000};
  EXPECT_EQ(analysis::PartOf(run, &times).windows.size(), 2u);
  EXPECT_NEAR(static_cast<double>(times.start_ns), 1e9, 1e6);
  EXPECT_NEAR(static_cast<double>(times.end_ns), 2e9, 1e6);
  for (RunTimes none : {RunTimes{600'000'000, 900'000'000}, RunTimes{3 * kHalfNs, INT64_MAX}})
    EXPECT_THROW(analysis::PartOf(run, &none), Error);
}

}  // namespace
}  // namespace headrace::experiments
