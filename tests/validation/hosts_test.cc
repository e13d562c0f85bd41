// The allocation program against every way to run small random pipelines.
#include "tests/validation/hosts.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <string>

#include "base/error.h"
#include "tests/seed.h"

namespace headrace::validation {
namespace {

void EqualsTrying(const HostSize& size, int instances, uint64_t stream) {
  SCOPED_TRACE("HEADRACE_SEED=" + std::to_string(TestSeed(17)));
  Dice dice(TestSeed(17), stream);
  int feasible = 0, cached = 0, changed = 0;
  for (int i = 0; i < instances; ++i) {
    const analysis::HostProblem problem = DrawHost(size, &dice);
    const std::optional<double> least = LeastSeconds(problem);
    analysis::HostReport report;
    std::optional<analysis::HostSolution> solution;
    try {
      solution = analysis::SolveHost(problem, &report);
    } catch (const Error& error) {
      ADD_FAILURE() << "instance " << i << ": " << error.fact();
      continue;
    }
    ASSERT_EQ(solution.has_value(), least.has_value()) << "instance " << i;
    if (!solution) continue;
    ++feasible;
    EXPECT_NEAR(report.objectives[0].value, *least, *least * 1e-6) << "instance " << i;
    for (const analysis::SolvedObjective& objective : report.objectives) {
      EXPECT_TRUE(objective.proof.optimal) << "instance " << i << ": " << objective.what;
    }
    EXPECT_LE(solution->average_s, *least / (1 - problem.yielded) * (1 + 1e-6)) << "instance " << i;
    const double most = problem.price_per_core_hour ? std::ceil(problem.cores) : problem.cores;
    EXPECT_LE(solution->cores, most * (1 + 1e-9)) << "instance " << i;
    for (const double kept : solution->kept) cached += kept > 0;
    changed += ChangesOf(problem, *solution) > 0;
  }
  EXPECT_GT(feasible, instances / 2);
  EXPECT_GT(changed, instances / 4);
  if (size.sites > 0) {
    EXPECT_GT(cached, instances / 8);
  }
}

TEST(Hosts, ThreadsCopiesAndOrderEqualTrying) {
  EqualsTrying({.stages = 3, .threads = 4, .sites = 0}, 200, 3);
}
TEST(Hosts, CachesToo) { EqualsTrying({.stages = 3, .threads = 3, .sites = 4}, 60, 4); }
TEST(Hosts, TwoCachesOnTwoBranches) {
  EqualsTrying(
      {.stages = 3, .threads = 2, .sites = 3, .with_copies = 0, .with_order = 0, .branches = 1}, 40,
      5);
}

TEST(Hosts, FewestKnobsChange) {
  SCOPED_TRACE("HEADRACE_SEED=" + std::to_string(TestSeed(17)));
  Dice dice(TestSeed(17), 6);
  int feasible = 0;
  for (int i = 0; i < 150; ++i) {
    analysis::HostProblem problem = DrawHost({.stages = 3, .threads = 4, .sites = 0}, &dice);
    problem.headroom = 0;
    problem.price_per_core_hour.reset();
    problem.yielded = 1e-7;
    const std::optional<analysis::HostSolution> solution = analysis::SolveHost(problem);
    if (!solution) continue;
    ++feasible;
    EXPECT_EQ(ChangesOf(problem, *solution), FewestChanges(problem, solution->batch_s).value_or(-1))
        << "instance " << i;
  }
  EXPECT_GT(feasible, 75);
}

TEST(Hosts, AHundredStagesAreProvenToo) {
  SCOPED_TRACE("HEADRACE_SEED=" + std::to_string(TestSeed(17)));
  Dice dice(TestSeed(17), 7);
  for (int i = 0; i < 5; ++i) {
    const analysis::HostProblem problem =
        DrawHost({.stages = 100, .threads = 16, .sites = 40}, &dice);
    analysis::HostReport report;
    const std::optional<analysis::HostSolution> solution = analysis::SolveHost(problem, &report);
    if (!solution) continue;
    EXPECT_TRUE(report.objectives[0].proof.optimal) << "instance " << i;
    EXPECT_NEAR(report.objectives[0].value, solution->average_s,
                solution->average_s * (problem.yielded + 1e-4))
        << "instance " << i;
  }
}

}  // namespace
}  // namespace headrace::validation
