// Verdicts that are not "stage X": consumer bound, balanced, and plans that cannot be.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <climits>

#include "analysis/model/bottleneck.h"
#include "analysis/program/allocation.h"
#include "base/error.h"
#include "tests/analysis/synthetic_run.h"

namespace headrace::analysis {
namespace {

SimulatedPipeline Chain(std::vector<double> blocked_s, double consumer_s) {
  SimulatedPipeline pipeline;
  pipeline.cores = 2;
  pipeline.consumer_s = consumer_s;
  for (size_t s = 0; s < blocked_s.size(); ++s) {
    const std::string name(1, static_cast<char>('a' + s));
    pipeline.stages.push_back({name, 1, 4, {{name, 0.00005, blocked_s[s], 0, 0, 0.2, -1}}});
  }
  return pipeline;
}

Error Refusal(const PipelineModel& model, const Budget& budget) {
  try {
    Allocate(model, budget);
  } catch (const Error& error) {
    return error;
  }
  return Error(ExitCode::kOk, "not refused");
}

TEST(Verdict, ConsumerBoundChangesNothing) {
  const RunView run = Record(Chain({0.002, 0.003}, 0.01), 8, 1);
  const PipelineModel model(run);
  const Bottleneck bottleneck = FindBottleneck(model);
  EXPECT_EQ(bottleneck.verdict, Verdict::kConsumer);
  EXPECT_TRUE(bottleneck.disagreement.empty()) << bottleneck.disagreement;
  const Allocation plan = Allocate(model, {});
  EXPECT_TRUE(plan.changes.empty());
  EXPECT_NEAR(plan.predicted, 100, 2);
}

TEST(Verdict, TwoEqualStagesAreBalanced) {
  const RunView run = Record(Chain({0.001, 0.005, 0.001, 0.005}, 0.001), 8, 1);
  const Bottleneck bottleneck = FindBottleneck(PipelineModel(run));
  EXPECT_EQ(bottleneck.verdict, Verdict::kBalanced);
  EXPECT_LT(bottleneck.findings[0].probability, 0.9);
}

// Stage b works as long as ever, and its pieces end late: of the windows whose mean its cost is, a
// few hold most of it, or all of them.
RunView Costing(double times, size_t each) {
  RunView run = Record(Chain({0.001, 0.006, 0.002}, 0.001), 8, 1);
  for (size_t i = 0; i < run.windows.size(); ++i) {
    if (i % each != 0) continue;
    OperatorCounters& work = run.windows[i].operators[1];
    work.busy_ns = static_cast<int64_t>(times * static_cast<double>(work.busy_ns));
    for (Count* part : {&work.blocked_ns, &work.blocked_low_ns, &work.blocked_high_ns}) {
      if (*part) **part = static_cast<int64_t>(times * static_cast<double>(**part));
    }
  }
  return run;
}

// A bound below the observed rate is a contradiction where it is known well.
TEST(Verdict, ABoundThatMayAllowTheRateIsNoContradiction) {
  const RunView twice = Costing(2, 1);
  const Bottleneck all = FindBottleneck(PipelineModel(twice));
  EXPECT_EQ(all.verdict, Verdict::kUndecided);
  EXPECT_THAT(all.measure, testing::HasSubstr("one pipeline at a time"));
  const RunView much = Costing(8, 8);
  const PipelineModel model(much);
  const Bottleneck some = FindBottleneck(model);
  EXPECT_LT(some.findings[0].limit.bound, 0.8 * model.demands().rate) << "else this tries nothing";
  EXPECT_NE(some.verdict, Verdict::kUndecided) << some.measure;
  EXPECT_EQ(some.findings[0].limit.name, "b");
  EXPECT_LE(some.findings[0].probability, 0.85);
}

TEST(Verdict, WaitsAndDemandsAgreeOnAClearStage) {
  const RunView run = Record(Chain({0.001, 0.006, 0.002}, 0.001), 8, 1);
  const Bottleneck bottleneck = FindBottleneck(PipelineModel(run));
  EXPECT_EQ(bottleneck.verdict, Verdict::kLimited);
  EXPECT_EQ(bottleneck.findings[0].limit.name, "b");
  ASSERT_TRUE(bottleneck.witness.has_value());
  EXPECT_EQ(bottleneck.witness->name, "b");
  EXPECT_TRUE(bottleneck.disagreement.empty()) << bottleneck.disagreement;
}

TEST(Verdict, WhatWaitsContradictIsNotSaidForSure) {
  RunView run = Record(Chain({0.0052, 0.006, 0.002}, 0.001), 8, 1);
  const double alone = FindBottleneck(PipelineModel(run)).findings[0].probability;
  EXPECT_GT(alone, 0.9);
  // The queue before stage b is said to be empty, that behind it full: so a keeps b waiting.
  run.queues[0].empty_ratio = 1;
  run.queues[0].full_ratio = 0;
  run.queues[1].full_ratio = 1;
  const Bottleneck contradicted = FindBottleneck(PipelineModel(run));
  EXPECT_EQ(contradicted.findings[0].limit.name, "b");
  EXPECT_EQ(contradicted.disagreement,
            "the waits and queues point at stage a, the costs at stage b");
  EXPECT_LT(contradicted.findings[0].probability, 0.9);
  EXPECT_GT(contradicted.findings[0].probability, 0.7);
}

// A pipeline may account its consumer as a stage; that is not a stage to give threads to.
TEST(Verdict, TheConsumersOwnAccountIsNotAStage) {
  RunView run = Record(Chain({0.002, 0.003}, 0.01), 8, 1);
  StageRow stage = run.stages[0];
  stage.name = "consumer";
  stage.stage_index = 2;
  run.stages.push_back(stage);
  OperatorRow op = run.operators[0];
  op.name = op.kind = op.stage = "consumer";
  op.busy_ns = run.steps.compute_ns;
  run.operators.push_back(op);
  for (WindowRow& window : run.windows) {
    window.stages.push_back(window.stages[0]);
    window.operators.push_back(window.operators[0]);
  }
  const PipelineModel model(run);
  EXPECT_EQ(model.stages().size(), 2u);
  EXPECT_EQ(FindBottleneck(model).verdict, Verdict::kConsumer);
  EXPECT_TRUE(Allocate(model, {}).changes.empty());
}

TEST(Allocate, SequentialStagesStaySequential) {
  RunView run = Record(Chain({0.001, 0.006, 0.002}, 0.001), 8, 1);
  run.stages[1].max_parallelism_count = 1;
  const PipelineModel model(run);
  const Allocation plan = Allocate(model, {});
  EXPECT_EQ(plan.settings.parallelism[1], 1);
  EXPECT_EQ(plan.limited_by.name, "b");
}

TEST(Allocate, ThreadsAndACacheAreOnePlan) {
  // Sequential: no thread helps, a cache does; without a budget for it nothing does.
  RunView run = Record(Chain({0.002, 0.006}, 0.001), 8, 1);
  run.stages[0].max_parallelism_count = run.stages[1].max_parallelism_count = 1;
  const PipelineModel sequential(run);
  Budget budget;
  budget.cache = CacheQuestion{1000, 20, {{"memory", 1e9, 3e9, 3e9, false, true}}};
  const Allocation plan = Allocate(sequential, budget);
  ASSERT_EQ(plan.caches.size(), 1u);
  EXPECT_EQ(plan.caches[0].stage, 1u);
  EXPECT_DOUBLE_EQ(plan.caches[0].share, 1);
  EXPECT_GT(plan.predicted, 3 * plan.now);
  EXPECT_DOUBLE_EQ(plan.caches[0].most_bytes, 1e9) << "what the tier has";
  EXPECT_LT(*plan.total_s, 0.5 * *plan.now_total_s);
  EXPECT_GE(plan.program.objectives.size(), 3u);
  // Beside the rest of the plan the memory has room for some of it.
  const double rest = plan.memory_bytes.value() + 0.1 * plan.caches[0].bytes;
  budget.memory_bytes = static_cast<uint64_t>(plan.caches[0].bytes + rest);
  const Allocation limited = Allocate(sequential, budget);
  ASSERT_EQ(limited.caches.size(), 1u);
  EXPECT_GE(limited.caches[0].most_bytes, limited.caches[0].bytes);
  EXPECT_LE(limited.caches[0].most_bytes + limited.memory_bytes.value(),
            static_cast<double>(*budget.memory_bytes));
  budget.memory_bytes.reset();
  // One epoch is never cached, and memory that the process may not have is not used.
  budget.cache->epochs = 1;
  EXPECT_TRUE(Allocate(sequential, budget).caches.empty());
  budget.cache->epochs = 20;
  budget.memory_bytes = 32 << 20;
  const Allocation tight = Allocate(sequential, budget);
  for (const PlannedCache& cache : tight.caches) EXPECT_LE(cache.bytes, 32 << 20);
  // With threads to give, no cache is needed.
  const RunView wide = Record(Chain({0.002, 0.006}, 0.004), 8, 1);
  const PipelineModel parallel(wide);
  budget.memory_bytes.reset();
  const Allocation threads = Allocate(parallel, budget);
  EXPECT_TRUE(threads.caches.empty());
  EXPECT_GT(threads.settings.parallelism[1], 1);
}

TEST(Allocate, MemoryBandwidthIsARow) {
  RunView run = Record(Chain({0.002, 0.006}, 0.001), 8, 1);
  MeasurementRow moved;
  moved.metric = "memory_bytes";
  moved.value = 1e9 * static_cast<double>(run.run.duration_ns) * 1e-9;
  moved.source = "counter";
  moved.cause = "memory controllers";
  run.measurements.push_back(moved);
  run.memory_ceiling_bytes_per_s = 2e9;  // twice what moves now
  const PipelineModel model(run);
  const Allocation plan = Allocate(model, {});
  EXPECT_LE(plan.predicted, 2.02 * plan.now);
  EXPECT_EQ(plan.limited_by.name, "memory bandwidth");
  run.memory_ceiling_bytes_per_s = 2e11;
  EXPECT_GT(Allocate(PipelineModel(run), {}).predicted, 3 * plan.now);
}

// What the rate is predicted to be now may be below what it was.
TEST(Allocate, GainsAreOverWhatWasObserved) {
  for (uint64_t seed = 1; seed < 20; ++seed) {
    const RunView run = Record(Chain({0.004, 0.005, 0.004}, 0.0045), 8, seed);
    const Allocation plan = Allocate(PipelineModel(run), {});
    if (plan.changes.empty()) {
      EXPECT_DOUBLE_EQ(plan.predicted, plan.now) << "seed " << seed;
    } else {
      EXPECT_GE(plan.predicted, 1.03 * plan.now) << "seed " << seed;
    }
  }
}

TEST(Allocate, TargetIsReachedWithTheFewestChanges) {
  const RunView run = Record(Chain({0.004, 0.006, 0.005}, 0.001), 8, 1);
  Budget budget;
  budget.target = 190;
  const Allocation plan = Allocate(PipelineModel(run), budget);
  ASSERT_EQ(plan.changes.size(), 1u);
  EXPECT_EQ(plan.changes[0].knob, "b.parallelism");
}

TEST(Allocate, RefusalsSayWhichBudgetAndByHowMuch) {
  const RunView run = Record(Chain({0.002, 0.006, 0.002}, 0.004), 8, 1);
  const PipelineModel model(run);
  Budget memory;
  memory.memory_bytes = 100 << 10;
  const Error over = Refusal(model, memory);
  EXPECT_EQ(over.code(), ExitCode::kInconclusive);
  EXPECT_THAT(over.fact(), testing::HasSubstr("no plan fits 100 KiB: the minimum is 384 KiB"));
  Budget target;
  target.target = 1000;
  const Error slow = Refusal(model, target);
  EXPECT_EQ(slow.code(), ExitCode::kInconclusive);
  EXPECT_THAT(slow.fact(), testing::HasSubstr("limited by the trainer"));
}

TEST(Allocate, StaysWithinItsMemory) {
  const RunView run = Record(Chain({0.002, 0.006, 0.002}, 0.001), 8, 1);
  const PipelineModel model(run);
  for (uint64_t kib : {400, 500, 600, 800, 1000, 1200, 2000}) {
    Budget budget;
    budget.memory_bytes = kib << 10;
    const Allocation plan = Allocate(model, budget);
    ASSERT_TRUE(plan.memory_bytes.has_value());
    EXPECT_LE(*plan.memory_bytes, static_cast<double>(kib << 10)) << kib << " KiB";
  }
}

// What fits as it is leaves no room for a thread, unless a long queue is shortened.
TEST(Allocate, ALongQueueGivesItsMemoryToThreads) {
  SimulatedPipeline pipeline = Chain({0.001, 0.006}, 0.001);
  for (SimulatedStage& stage : pipeline.stages) stage.queue_capacity = 24;
  const RunView run = Record(pipeline, 8, 1);
  const PipelineModel model(run);
  Budget now;
  // 64 KiB an element: two queues, an element in work at each stage and at the trainer.
  now.memory_bytes = (24 + 24 + 2 + 1) * 65536;
  const Allocation plan = Allocate(model, now);
  EXPECT_GT(plan.settings.parallelism[1], 2);
  EXPECT_GT(plan.predicted, 2 * plan.now);
  EXPECT_LE(*plan.memory_bytes, static_cast<double>(*now.memory_bytes));
}

// An account inside an operator of the first stage, as kinds of transforms have one, completes
// many times a batch.
TEST(Model, AccountsInsideAnOperatorAreNoFirings) {
  RunView run = Record(Chain({0.001, 0.006}, 0.001), 8, 1);
  OperatorRow inside = run.operators[0];
  inside.name = "sigrid_hash";
  inside.completions_count *= 47;
  inside.bytes_in_bytes = inside.bytes_out_bytes = 0;
  inside.busy_ns = 0;
  inside.on_cpu_ns = 0;
  inside.wait_in_ns = inside.wait_out_ns = inside.lock_wait_ns = 0;
  run.operators.insert(run.operators.begin() + 1, inside);
  for (WindowRow& window : run.windows) {
    OperatorCounters each = inside;
    each.completions_count = 47 * window.operators[0].completions_count;
    window.operators.insert(window.operators.begin() + 1, each);
  }
  const PipelineModel model(run);
  EXPECT_EQ(model.stages()[0].firings, 1);
  EXPECT_EQ(model.stages()[0].visit_ratio, 1);
  ASSERT_TRUE(model.stages()[0].element_bytes.has_value());
  EXPECT_EQ(*model.stages()[0].element_bytes, 65536);
  EXPECT_NEAR(model.stages()[0].cv, 0.2, 0.15);
}

// Who is preempted while it holds a lock holds it longer than it has to; a modelled device works on
// while its users do something else, and its time is its own.
TEST(Model, ADevicesTimeIsNotItsUsers) {
  SimulatedPipeline pipeline = Chain({0}, 0.001);
  SimulatedOperator& fetch = pipeline.stages[0].operators[0];
  fetch.held_blocked_s = 0.004;
  fetch.resource = 0;
  pipeline.resources = {{"disk", 1}};
  for (const char* kind : {"lock", "device"}) {
    RunView run = Record(pipeline, 8, 1);
    run.resources[0].kind = kind;
    run.operators[0].kind = std::string(kind) == "lock" ? "lock" : "io";
    for (WindowRow& window : run.windows) {  // its user was seen to wait for half of it
      OperatorCounters& op = window.operators[0];
      op.busy_ns -= (op.busy_ns - op.on_cpu_ns.value()) / 2;
      if (op.blocked_ns) *op.blocked_ns /= 2;
    }
    const PipelineModel model(run);
    ASSERT_EQ(model.resources()[0].users.size(), 1u) << kind;
    const double held = model.demands().resources[0].hold_s;
    EXPECT_NEAR(held, std::string(kind) == "lock" ? 0.002 : 0.004, 0.0002) << kind;
  }
}

// Programs may say that a queue has no end, and a stage may cost nothing: the simulated producer
// then never waits.
TEST(Allocate, EndlessQueuesEnd) {
  RunView run = Record(Chain({0.001, 0.006}, 0.001), 8, 1);
  run.queues[0].capacity_count = run.queues[1].capacity_count = INT_MAX;
  run.run.memory_bytes = int64_t{1} << 40;
  const auto free = [](OperatorCounters* op) { op->busy_ns = 0, op->on_cpu_ns = 0; };
  free(&run.operators[0]);
  for (WindowRow& window : run.windows) free(&window.operators[0]);
  const PipelineModel model(run);
  const Allocation plan = Allocate(model, {});
  EXPECT_GT(plan.predicted, 2 * plan.now);
  run.run.memory_bytes = int64_t{1} << 30;  // which such queues do not fit
  EXPECT_GE(Allocate(PipelineModel(run), {}).predicted, 0.9 * plan.now);
}

TEST(Verdict, OrderWithoutStagesIsNoVerdict) {
  RunView run = Record(Chain({0.002}, 0.01), 8, 1);
  run.operators[0].kind = "consumer";
  run.run.element_order = "file";
  const PipelineModel model(run);
  EXPECT_TRUE(model.stages().empty());
  EXPECT_EQ(FindBottleneck(model).verdict, Verdict::kConsumer);
}

TEST(Model, StartAndDrainAreNotSteady) {
  RunView run = Record(Chain({0.001, 0.006, 0.002}, 0.001), 8, 1);
  for (size_t w : {size_t{0}, size_t{1}}) run.windows[w].steps.steps_count /= 4;
  run.windows.back().steps.steps_count /= 3;
  const PipelineModel model(run);
  EXPECT_GE(model.steady_windows().front(), 2u);
  EXPECT_LT(model.steady_windows().back(), run.windows.size() - 1);
}

}  // namespace
}  // namespace headrace::analysis
