// Chains with a known bottleneck, simulated: the finding names it, and the plan's predicted rate is
// what a simulation of the planned pipeline gives.
#include <gtest/gtest.h>

#include <cstdlib>

#include "analysis/model/bottleneck.h"
#include "analysis/program/allocation.h"
#include "analysis/statistics/statistics.h"
#include "tests/analysis/synthetic_run.h"
#include "tests/seed.h"

namespace headrace::analysis {
namespace {

struct Chain {
  SimulatedPipeline pipeline;
  std::string truth;  // name of the limiting row
};

// A chain of 3 to 8 stages in which one row, of the kind `kind`, allows at least 15 % less than all
// others.
Chain MakeChain(int kind, Random& random) {
  Chain chain;
  SimulatedPipeline& pipeline = chain.pipeline;
  pipeline.cores = 2;
  const size_t n = 3 + random.Below(6);
  const double slow_s = 0.004 + 0.006 * random.Uniform();  // of the bottleneck, per element
  const size_t culprit = random.Below(n);
  for (size_t s = 0; s < n; ++s) {
    SimulatedStage stage;
    stage.name = "stage" + std::to_string(s);
    stage.queue_capacity = 2 + static_cast<int>(random.Below(7));
    SimulatedOperator op;
    op.name = "op" + std::to_string(s);
    op.cv = random.Uniform() * 0.5;
    op.cpu_s = slow_s * 0.02;
    op.blocked_s = slow_s * (0.1 + 0.6 * random.Uniform());
    stage.operators.push_back(op);
    pipeline.stages.push_back(stage);
  }
  SimulatedOperator& slow = pipeline.stages[culprit].operators[0];
  chain.truth = pipeline.stages[culprit].name;
  switch (kind) {
    case 0:  // blocked
      slow.blocked_s = slow_s;
      break;
    case 1:  // CPU of one thread
      slow.cpu_s = slow_s;
      slow.blocked_s = 0;
      break;
    case 2:  // lock with several threads
      pipeline.resources.push_back({"table", 1});
      pipeline.stages[culprit].parallelism = 3;
      slow.resource = 0;
      slow.held_blocked_s = slow_s;
      slow.blocked_s = 0.3 * slow_s;
      chain.truth = "table";
      break;
    case 3:  // consumer
      pipeline.consumer_s = slow_s;
      chain.truth = "consumer";
      break;
    default:  // cores: two stages compute, each with threads to spare
      for (size_t s : {size_t{0}, n - 1}) {
        pipeline.stages[s].parallelism = 3;
        pipeline.stages[s].operators[0].cpu_s = slow_s;
        pipeline.stages[s].operators[0].blocked_s = 0;
      }
      chain.truth = "cores";
  }
  if (kind != 3) pipeline.consumer_s = slow_s * 0.3;
  return chain;
}

TEST(Chains, TrueBottleneckIsNamedAndThePlanKeepsItsPromise) {
  const uint64_t seed = TestSeed(7);
  SCOPED_TRACE("HEADRACE_SEED=" + std::to_string(seed));
  Random random(seed);
  constexpr int kChains = 60;
  int named = 0, close = 0, wrong_when_sure = 0;
  for (int i = 0; i < kChains; ++i) {
    const Chain chain = MakeChain(i % 5, random);
    const RunView run = Record(chain.pipeline, 8, seed + static_cast<uint64_t>(i));
    const PipelineModel model(run);
    const Bottleneck bottleneck = FindBottleneck(model);
    const bool right = bottleneck.findings[0].limit.name == chain.truth;
    named += right;
    wrong_when_sure += !right && bottleneck.findings[0].probability > 0.9;
    const Allocation plan = Allocate(model, {});
    SimulatedPipeline changed = chain.pipeline;
    std::string settings;
    for (size_t s = 0; s < changed.stages.size(); ++s) {
      changed.stages[s].parallelism = plan.settings.parallelism[s];
      changed.stages[s].queue_capacity = plan.settings.queue_capacity[s];
      settings += " " + std::to_string(plan.settings.parallelism[s]);
    }
    const double truth = SimulatedRate(changed, 4000, seed + 1000).value_or(0);
    const double error = plan.predicted / truth - 1;
    close += std::abs(error) <= 0.15;
    if (!right || std::abs(error) > 0.15) {
      std::printf("chain %d: truth %s, named %s (%.2f); predicted %.1f/s, then %.1f/s; threads%s\n",
                  i, chain.truth.c_str(), bottleneck.findings[0].limit.name.c_str(),
                  bottleneck.findings[0].probability, plan.predicted, truth, settings.c_str());
    }
  }
  std::printf("named %d of %d, predicted within 15 %% %d of %d\n", named, kChains, close, kChains);
  EXPECT_GE(named, kChains * 9 / 10);
  EXPECT_GE(close, kChains * 9 / 10);
  EXPECT_LE(wrong_when_sure, kChains * 3 / 100 + 1);
}

}  // namespace
}  // namespace headrace::analysis
