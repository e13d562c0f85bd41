// Simulated runs as a live view has read them, for the tests of `headrace top`.
#pragma once
#include <string>

#include "dashboards/terminal/layout.h"
#include "dashboards/terminal/live_run.h"
#include "dashboards/terminal/time_course.h"
#include "dashboards/terminal/top_model.h"
#include "dashboards/terminal/top_verdict.h"
#include "tests/analysis/synthetic_run.h"
#include "tests/dashboards/example_pipeline.h"

namespace headrace::dashboards {

inline constexpr int64_t kSecondNs = 1'000'000'000;

inline analysis::SimulatedPipeline WithManyStages(int stages) {
  analysis::SimulatedPipeline pipeline = DecodeLimits();
  pipeline.cores = 64;
  const auto batch = pipeline.stages.back();
  for (int i = 0; i < stages; ++i) {
    pipeline.stages.push_back(batch);
    pipeline.stages.back().name = "a_transform_with_a_long_name_" + std::to_string(i);
  }
  return pipeline;
}

inline analysis::RunView RecordedForTop(const analysis::SimulatedPipeline& pipeline,
                                        double seconds = 8) {
  analysis::RunView run = analysis::Record(pipeline, seconds, 3);
  run.run.pipeline_path = "p.toml";
  run.run.settings_text = "";
  run.run.pid = 26603;
  const auto split = [](analysis::OperatorCounters* op) {
    op->runnable_ns = 0;
    op->blocked_ns = op->busy_ns - op->on_cpu_ns.value_or(0);
  };
  for (analysis::OperatorRow& op : run.operators) split(&op);
  for (analysis::WindowRow& window : run.windows) {
    for (analysis::OperatorCounters& op : window.operators) split(&op);
  }
  double own = 0;
  for (const analysis::StageRow& stage : run.stages) {
    own += static_cast<double>(stage.on_cpu_ns.value_or(0));
  }
  const double busy = own / static_cast<double>(run.run.duration_ns) + 0.1;
  run.hosts = {{"collector_cpu_ns", "ns", "counter", {}, {}, {}, 48e6},
               {"host_cores", "cores", "counter", {}, {}, {}, 2},
               {"host_busy_cores", "cores", "counter", busy, busy, busy, busy}};
  return run;
}

// The run as a live view has read it, with figures of the machine.
inline LiveFigures Live(const analysis::RunView& run, const char* state = "recording") {
  LiveFigures live;
  live.run = run;
  live.run.run.state = state;
  live.rss_bytes = 94371840;
  for (const analysis::WindowRow& window : run.windows) {
    const auto ns = static_cast<double>(window.duration_ns);
    const auto add = [&](MachineFigure course, double value) {
      live.courses[course].push_back({window.start_ns, window.duration_ns, value});
    };
    add(MachineFigure::kProcessCpu, 0.62 * ns);
    add(MachineFigure::kCpuPressure, window.start_ns < 4 * kSecondNs ? 0.1 * ns : 0.6 * ns);
    if (window.start_ns % (2 * kSecondNs) == 0) add(MachineFigure::kDeviceRead, 1e6);
  }
  return live;
}

inline TopModel ModelOf(const analysis::RunView& run, const char* state = "recording") {
  analysis::RunView judged = run;
  judged.run.state = state;
  const TopVerdict verdict = MakeTopVerdict(judged);
  return MakeTopModel(Live(run, state), &verdict, 10 * kSecondNs);
}

inline std::string ScreenText(const TopModel& model, size_t width, size_t height,
                              bool ascii = false, const TopState& state = {}) {
  return TextOf(LayOutTop(model, state, {width, height, ascii, false}), false);
}

}  // namespace headrace::dashboards
