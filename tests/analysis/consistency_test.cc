// No statement about a run contradicts another: over chains of every kind that the suites use.
#include "tests/analysis/consistency.h"

#include <gtest/gtest.h>

#include "analysis/model/bottleneck.h"
#include "tests/analysis/made_runs.h"
#include "tests/analysis/outside_run.h"

namespace headrace::analysis {
namespace {

void Expect(const RunView& run, const std::string& what) {
  const Contradictions contradictions(run);
  EXPECT_TRUE(contradictions.found().empty())
      << what << ": "
      << VerdictName(contradictions.statements().bottleneck
                         ? contradictions.statements().bottleneck->verdict
                         : Verdict::kUndecided)
      << "\n"
      << contradictions.text();
}

// Costs drawn alike in all stages, so that rows come close to each other; queues from 1 up; some
// with a lock, some on few cores, some in order.
SimulatedPipeline Drawn(uint64_t seed) {
  Random random(seed);
  SimulatedPipeline pipeline;
  pipeline.cores = 1 + static_cast<double>(random.Below(4));
  const size_t stages = 2 + random.Below(4);
  if (random.Below(3) == 0) pipeline.resources = {{"table", 1}};
  const bool ordered = random.Below(4) == 0;
  for (size_t s = 0; s < stages; ++s) {
    const std::string name(1, static_cast<char>('a' + s));
    const double cost = 0.002 + 0.008 * random.Uniform();
    const double cpu = random.Below(2) == 0 ? cost : 0.1 * cost;
    SimulatedStage stage{name,
                         1 + static_cast<int>(random.Below(3)),
                         1 + static_cast<int>(random.Below(6)),
                         {{name, cpu, cost - cpu, 0, 0, 1.2 * random.Uniform(), -1}}};
    stage.ordered = ordered;
    if (!pipeline.resources.empty() && s == stages / 2) {
      stage.operators[0].resource = 0;
      stage.operators[0].held_blocked_s = 0.8 * stage.operators[0].blocked_s;
      stage.operators[0].blocked_s *= 0.2;
    }
    pipeline.stages.push_back(std::move(stage));
  }
  pipeline.consumer_s = 0.001 + 0.008 * random.Uniform();
  pipeline.consumer_cv = random.Below(3) == 0 ? 2.0 : 0.1;
  return pipeline;
}

TEST(Consistency, OfDrawnPipelines) {
  for (uint64_t seed = 1; seed <= 40; ++seed) {
    RunView run = Record(Drawn(seed), 10, seed);
    if (Drawn(seed).stages[0].ordered) run.run.element_order = "file";
    Expect(run, fmt::format("drawn {}", seed));
  }
}

TEST(Consistency, OfOneThread) {
  for (uint64_t seed = 1; seed <= 6; ++seed) {
    Random random(seed);
    OneThread costs;
    costs.load_cpu_s = 0.004 * random.Uniform();
    costs.load_blocked_s = 0.004 * random.Uniform();
    costs.outside_s = 0.002 * random.Uniform();
    costs.step_cpu_s = 0.004 * random.Uniform();
    costs.cores = 1 + static_cast<double>(random.Below(3));
    costs.level = 2 + static_cast<int>(random.Below(2));
    Expect(RecordOneThread(costs, 10, seed), fmt::format("one thread {}", seed));
  }
}

TEST(Consistency, BesideOtherPrograms) {
  for (uint64_t seed = 1; seed <= 10; ++seed) {
    SimulatedPipeline pipeline = Drawn(seed);
    for (SimulatedStage& stage : pipeline.stages) stage.ordered = false;
    Expect(RecordBeside(pipeline, 1 + static_cast<int>(seed % 4), 10, seed),
           fmt::format("beside others {}", seed));
  }
}

// Queues of one and costs that vary: the row that gains most by more threads has not the smallest
// bound (a pack stage that allows 199 beside a consumer that takes 161).
TEST(Consistency, ShortQueuesAndVaryingCosts) {
  for (uint64_t seed = 1; seed <= 6; ++seed) {
    SimulatedPipeline pipeline;
    pipeline.cores = 4;
    pipeline.stages = {{"load", 1, 1, {{"load", 0.0002, 0.005, 0, 0, 1, -1}}},
                       {"join", 2, 1, {{"join", 0.0002, 0.009, 0, 0, 1, -1}}},
                       {"pack", 1, 1, {{"pack", 0.0002, 0.0048, 0, 0, 1, -1}}}};
    pipeline.consumer_s = 0.0062;
    pipeline.consumer_cv = 1;
    const RunView run = Record(pipeline, 20, seed);
    Expect(run, fmt::format("short queues {}", seed));
    const Bottleneck bottleneck = FindBottleneck(PipelineModel(run));
    EXPECT_NE(bottleneck.verdict, Verdict::kConsumer);
    EXPECT_NE(bottleneck.loss.find("queues hold 1"), std::string::npos) << bottleneck.loss;
  }
}

// Steps that end late put all of a long wait into one window.
TEST(Consistency, LumpySteps) {
  for (uint64_t seed = 1; seed <= 8; ++seed) {
    SimulatedPipeline pipeline;
    pipeline.cores = 4;
    pipeline.stages = {{"rpc", 8, 2, {{"rpc", 0.001, 0.9, 0, 0, 2.4, -1}}}};
    pipeline.stages[0].ordered = true;
    pipeline.consumer_s = 0.02;
    RunView run = Record(pipeline, 20, seed);
    run.run.element_order = "file";
    Expect(run, fmt::format("lumpy {}", seed));
  }
}

TEST(Consistency, FromOutside) {
  for (const double stall : {0.02, 0.3, 0.65, 0.9}) {
    for (const int workers : {1, 4}) {
      Expect(Loader(workers, 0.9 - stall, stall, 0.5, 0.3, 0.15).view, "from outside");
    }
  }
}

}  // namespace
}  // namespace headrace::analysis
