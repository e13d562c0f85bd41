#include "analysis/run/run_slice.h"

#include <gtest/gtest.h>

#include "analysis/model/pipeline_model.h"
#include "tests/analysis/synthetic_run.h"

namespace headrace::analysis {
namespace {

SimulatedPipeline TwoStages() {
  SimulatedPipeline pipeline;
  pipeline.cores = 4;
  pipeline.consumer_s = 0.002;
  for (const double cpu_s : {0.004, 0.006}) {
    SimulatedStage stage{cpu_s < 0.005 ? "load" : "parse", 1, 4, {}};
    stage.operators.emplace_back();
    stage.operators.back().name = stage.name;
    stage.operators.back().cpu_s = cpu_s;
    pipeline.stages.push_back(stage);
  }
  return pipeline;
}

TEST(RunSlice, IsARunOfItsWindowsAlone) {
  const RunView run = Record(TwoStages(), 10, 5);
  ASSERT_GE(run.windows.size(), 12u);
  const std::vector<size_t> windows = {3, 4, 5, 8, 9, 10};
  const RunView part = SliceOf(run, windows);
  ASSERT_EQ(part.windows.size(), windows.size());
  int64_t at_ns = 0, steps = 0, cpu_ns = 0;
  for (size_t i = 0; i < windows.size(); ++i) {
    const WindowRow& window = run.windows[windows[i]];
    EXPECT_EQ(part.windows[i].start_ns, at_ns) << "one behind the other";
    at_ns += window.duration_ns;
    steps += window.steps.steps_count;
    cpu_ns += window.operators[1].on_cpu_ns.value_or(0);
  }
  EXPECT_EQ(part.run.duration_ns, at_ns);
  EXPECT_EQ(part.steps.steps_count, steps);
  EXPECT_EQ(part.operators[1].on_cpu_ns, cpu_ns);
  // The same costs as the whole run, as nothing changed.
  const PipelineModel whole(run), model(part);
  EXPECT_NEAR(model.demands().stage_s[1], whole.demands().stage_s[1], 0.02 * 0.006);
  EXPECT_NEAR(model.demands().rate, whole.demands().rate, 0.03 * whole.demands().rate);
}

TEST(RunSlice, KeepsWhatDevicesToldOfItsWindows) {
  RunView run = Record(TwoStages(), 10, 5);  // windows of half a second
  constexpr int64_t kHalfSecond = 500'000'000;
  for (int64_t s = 0; s < 10; ++s) {
    run.accelerator_use.push_back({2 * s * kHalfSecond, 2 * kHalfSecond, "gpu0", 0.1 * s});
  }
  const RunView part = SliceOf(run, {4, 5, 9});
  ASSERT_EQ(part.accelerator_use.size(), 3u);
  for (size_t i = 0; i < 3; ++i) {
    const AcceleratorUseRow& use = part.accelerator_use[i];
    EXPECT_NEAR(use.start_ns, i * kHalfSecond, 1e6);
    EXPECT_NEAR(use.duration_ns, kHalfSecond, 1e6);
    EXPECT_NEAR(use.use_ratio, i < 2 ? 0.2 : 0.4, 1e-9);
  }
}

TEST(RunSlice, FiguresOfTheWholeRunAreShared) {
  RunView run = Record(TwoStages(), 10, 5);
  const auto set = [&](const char* metric, double value) {
    for (HostRow& host : run.hosts) {
      if (host.metric == metric) host.last_value = host.mean_value = host.maximum_value = value;
    }
    if (run.FindHost(metric) == nullptr)
      run.hosts.push_back({metric, "ns", "counter", value, value, value, value});
  };
  set("collector_cpu_ns", 2e9);
  set("process_rss_bytes", 7e8);
  run.hosts.back().maximum_value = 9e8;
  std::vector<size_t> half;
  for (size_t i = 0; i < run.windows.size() / 2; ++i) half.push_back(i);
  const RunView part = SliceOf(run, half);
  EXPECT_NEAR(*part.FindHost("collector_cpu_ns")->last_value, 1e9, 1e8);
  EXPECT_EQ(*part.FindHost("process_rss_bytes")->maximum_value, 7e8) << "what it is now";
}

TEST(RunSlice, WhatAWindowDidNotMeasureIsNotZero) {
  RunView run = Record(TwoStages(), 5, 5);
  run.windows[2].operators[0].on_cpu_ns.reset();
  EXPECT_FALSE(SliceOf(run, {1, 2, 3}).operators[0].on_cpu_ns.has_value());
  EXPECT_TRUE(SliceOf(run, {1, 3}).operators[0].on_cpu_ns.has_value());
  EXPECT_EQ(SliceOf(run, {}).run.duration_ns, 0);
}

}  // namespace
}  // namespace headrace::analysis
