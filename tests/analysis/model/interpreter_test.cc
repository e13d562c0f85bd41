// Threads of one Python process that run in turn.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "analysis/advice/next_step.h"
#include "analysis/model/bottleneck.h"
#include "analysis/run/counter_sums.h"
#include "analysis/run/interpreter_waits.h"
#include "analysis/run/run_slice.h"
#include "tests/analysis/made_runs.h"

namespace headrace::analysis {
namespace {

using testing::HasSubstr;
using testing::Not;

// A stage for the trainer's steps, which compute for that share of their time; returns its
// operator.
OperatorRow AddStep(double computes, RunView* run) {
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
  for (WindowRow& window : run->windows) {
    OperatorCounters one;
    one.busy_ns = window.steps.compute_ns;
    one.on_cpu_ns = static_cast<int64_t>(computes * static_cast<double>(window.steps.compute_ns));
    window.operators.push_back(one);
    Add(&step, one, window.start_ns == run->windows[0].start_ns);
    window.stages.emplace_back();
  }
  run->operators.push_back(step);
  run->stages.push_back(trainer);
  return step;
}

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
  const OperatorRow step = AddStep(0.25, &run);
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

// Where the lock is given back soon, waits for it have no limit or a short one; stacks name the
// function.
TEST(Interpreter, ThreadsAreSeenInTheFunctionThatWaitsForIt) {
  const auto record = [](double waits, int64_t samples_count, const char* function) {
    RunView run = RecordThreads(0.005, 0.005, 0.05, "thread_call");
    StackRow row;
    row.kind = "off_cpu";
    row.operator_name = "make";
    row.stage = "ThreadPoolExecutor";
    row.thread = "python";
    row.folded = std::string("python;[lock];__GI___clone3;start_thread;PyEval_RestoreThread;") +
                 function + ";pthread_cond_timedwait";
    row.time_ns = static_cast<int64_t>(waits * static_cast<double>(run.stages[0].lifetime_ns));
    row.samples_count = samples_count;
    run.stacks.push_back(row);
    run.pools_interpreter_ratio = InterpreterShareOfPools(run);
    return run;
  };
  EXPECT_EQ(LimitOf(record(0.4, 100, "take_gil")), "interpreter");
  EXPECT_EQ(LimitOf(SliceOf(record(0.4, 100, "take_gil"), {0, 1, 2, 3, 4, 5})), "interpreter");
  EXPECT_NE(LimitOf(record(0.1, 100, "take_gil")), "interpreter") << "too short";
  EXPECT_NE(LimitOf(record(0.4, 5, "take_gil")), "interpreter") << "too few stacks";
  EXPECT_NE(LimitOf(record(0.4, 100, "sem_wait")), "interpreter") << "another lock";
}

TEST(Interpreter, AStepThatWaitsForItShowsIt) {
  EXPECT_EQ(LimitOf(RecordStep(0.7, 1.05)), "interpreter");
  EXPECT_NE(LimitOf(RecordStep(0.3, 1.05)), "interpreter") << "a step that mostly computes";
  EXPECT_NE(LimitOf(RecordStep(0.7, 1.6)), "interpreter") << "other threads compute";
}

// A loader in the trainer's thread, and a step whose thread is in take_gil() for `waits` of it, as
// `samples_count` stacks say; it computes for `computes` of it.
RunView RecordHeldStep(double waits, int64_t samples_count = 100, double computes = 0.1) {
  SimulatedPipeline pipeline;
  pipeline.cores = 4;
  pipeline.stages = {{"loader", 1, 4, {{"getitem", 0.0002, 0.001, 0, 0, 0.1, -1}}}};
  pipeline.consumer_s = 0.02;
  RunView run = Record(pipeline, 20, 1);
  run.run.pipeline_path.clear();
  const OperatorRow step = AddStep(computes, &run);
  StackRow row;
  row.kind = "off_cpu";
  row.operator_name = "step";
  row.stage = "trainer";
  row.process_id = 1;
  row.pid = 100;
  row.thread = "python";
  row.folded =
      "python;[sleep];_start;__libc_start_main;PyEval_RestoreThread;take_gil;pthread_cond_"
      "timedwait";
  row.time_ns = static_cast<int64_t>(waits * static_cast<double>(step.busy_ns));
  row.samples_count = samples_count;
  run.stacks.push_back(row);
  const auto python = [&](const char* thread, const char* folded, double seconds) {
    StackRow sampled;
    sampled.kind = "python";
    sampled.process_id = 1;
    sampled.pid = 100;
    sampled.thread = thread;
    sampled.folded = folded;
    sampled.time_ns = static_cast<int64_t>(seconds * 1e9);
    sampled.samples_count = static_cast<int64_t>(seconds * 10);
    run.stacks.push_back(sampled);
  };
  python("MainThread", "MainThread;main (train.py:50, loop 45)", 20);
  python("page", "page;Thread.run (threading.py:982);Page.draw (train.py:20, loop 18)", 12);
  python("saver", "saver;Saver.run (train.py:30);Queue.get (queue.py:171)", 19);
  python("beat", "beat;Beat.run (train.py:40, loop 39, sleeps)", 19);
  run.step_interpreter_ratio = InterpreterShareOfStep(run);
  return run;
}

TEST(Interpreter, AStepThatAnotherThreadHoldsUpIsNoCostOfTheTrainer) {
  const RunView run = RecordHeldStep(0.8);
  const PipelineModel model(run);
  const Bottleneck bottleneck = FindBottleneck(model);
  EXPECT_EQ(bottleneck.findings[0].limit.kind_name(), "held step");
  EXPECT_EQ(bottleneck.verdict, Verdict::kLimited);
  EXPECT_LE(bottleneck.findings[0].probability, 0.9) << "threads in turn may wait for another lock";
  const Statements statements = MakeStatements(run);
  const NextStep next = NextStepOf(run, statements);
  EXPECT_THAT(next.text, HasSubstr("thread page, in Page.draw (train.py:20)"))
      << "the others wait or sleep";
  // Of a part of it there are no stacks.
  EXPECT_EQ(LimitOf(SliceOf(run, {0, 1, 2, 3, 4, 5})), "held step");
}

TEST(Interpreter, AStepThatHardlyWaitsForItIsTheTrainers) {
  EXPECT_EQ(LimitOf(RecordHeldStep(0.1)), "consumer");
  EXPECT_EQ(LimitOf(RecordHeldStep(0.8, 5)), "consumer") << "too few stacks";
  EXPECT_EQ(LimitOf(RecordHeldStep(0.3, 100, 0.1)), "consumer") << "it waits longer for another";
  // In between it is not sure.
  const RunView run = RecordHeldStep(0.2, 100, 0.75);
  const Bottleneck bottleneck = FindBottleneck(PipelineModel(run));
  EXPECT_EQ(bottleneck.findings[0].limit.kind_name(), "consumer");
  EXPECT_LE(bottleneck.findings[0].probability, 0.9);
}

// Where one of two ranks waits, the other one waits for it.
TEST(Interpreter, TheRankThatWaitsMostShowsIt) {
  RunView run = RecordHeldStep(0.3, 100, 0.5);
  run.stages.back().last_parallelism_count = 2;
  EXPECT_NEAR(InterpreterShareOfStep(run).value_or(0), 0.6, 0.01) << "of its own step";
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
