// Threads of one Python process that run in turn.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "analysis/advice/next_step.h"
#include "analysis/model/bottleneck.h"
#include "analysis/run/counter_sums.h"
#include "tests/analysis/made_runs.h"

namespace headrace::analysis {
namespace {

using testing::HasSubstr;
using testing::Not;

// Two threads of a pool, each on a CPU for `cpu_s` of a call; `timed`: share of their time that
// they wait with a time limit.
RunView RecordThreads(double cpu_s, double blocked_s, double timed, const std::string& kind) {
  SimulatedPipeline pipeline;
  pipeline.cores = 4;
  pipeline.stages = {{"ThreadPoolExecutor", 2, 4, {{"make", cpu_s, blocked_s, 0, 0, 0.1, -1}}}};
  pipeline.consumer_s = 0.0005;
  RunView run = Record(pipeline, 20, 1);
  run.run.pipeline_path.clear();
  run.operators[0].kind = kind;
  MeasurementRow waits;
  waits.metric = "off_cpu_ns";
  waits.cause = "sleep";
  waits.operator_name = "make";
  waits.stage = "ThreadPoolExecutor";
  waits.value = timed * static_cast<double>(run.stages[0].lifetime_ns);
  run.measurements.push_back(waits);
  return run;
}

// The same of threads that wait without a limit, beside a step that waits for other threads for
// `locked` of its time; `cores`: what the whole program uses.
RunView RecordStep(double locked, double cores) {
  RunView run = RecordThreads(0.005, 0.005, 0.02, "thread_call");
  OperatorRow step;
  step.name = "step";
  step.kind = "consumer";
  step.stage = "trainer";
  step.stage_index = 1;
  step.source = "ebpf";
  StageRow trainer;
  trainer.name = "trainer";
  trainer.stage_index = 1;
  trainer.last_parallelism_count = 1;
  for (WindowRow& window : run.windows) {
    OperatorCounters one;
    one.busy_ns = window.steps.compute_ns;
    one.on_cpu_ns = window.steps.compute_ns / 4;
    window.operators.push_back(one);
    Add(&step, one, window.start_ns == run.windows[0].start_ns);
    window.stages.emplace_back();
  }
  run.operators.push_back(step);
  run.stages.push_back(trainer);
  MeasurementRow waits;
  waits.metric = "off_cpu_ns";
  waits.cause = "lock";
  waits.operator_name = "step";
  waits.stage = "trainer";
  waits.value = locked * static_cast<double>(step.busy_ns);
  run.measurements.push_back(waits);
  run.process_cpu.clear();
  for (int i = 0; i <= 4; ++i) {
    HostPointRow point;
    point.at_ns = i * run.run.duration_ns / 4;
    point.value = cores * static_cast<double>(point.at_ns);
    run.process_cpu.push_back(point);
  }
  return run;
}

std::string LimitOf(const RunView& run) {
  return std::string(FindBottleneck(PipelineModel(run)).findings[0].limit.kind_name());
}

TEST(Interpreter, ThreadsThatRunInTurnWaitForIt) {
  const RunView run = RecordThreads(0.005, 0.005, 0.4, "thread_call");
  EXPECT_EQ(LimitOf(run), "interpreter");
  const Statements statements = MakeStatements(run);
  const NextStep next = NextStepOf(run, statements);
  EXPECT_THAT(next.text, HasSubstr("processes instead of threads"));
  EXPECT_THAT(next.text, Not(HasSubstr("max_workers")));
}

TEST(Interpreter, AStepThatWaitsForItShowsIt) {
  EXPECT_EQ(LimitOf(RecordStep(0.7, 1.05)), "interpreter");
  EXPECT_NE(LimitOf(RecordStep(0.3, 1.05)), "interpreter") << "a step that mostly computes";
  EXPECT_NE(LimitOf(RecordStep(0.7, 1.6)), "interpreter") << "other threads compute";
}

TEST(Interpreter, IsNotNamedOfOthers) {
  EXPECT_NE(LimitOf(RecordThreads(0.005, 0.005, 0.4, "call")), "interpreter") << "processes";
  EXPECT_NE(LimitOf(RecordThreads(0.005, 0.005, 0.02, "thread_call")), "interpreter")
      << "they wait for something else";
  EXPECT_NE(LimitOf(RecordThreads(0.009, 0.001, 0.4, "thread_call")), "interpreter")
      << "they use nearly two cores";
  EXPECT_NE(LimitOf(RecordThreads(0.0005, 0.0095, 0.4, "thread_call")), "interpreter")
      << "they hardly compute";
}

}  // namespace
}  // namespace headrace::analysis
