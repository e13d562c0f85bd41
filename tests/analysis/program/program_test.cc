// The integer program against enumeration of every setting of small chains.
#include "analysis/program/program.h"

#include <Cbc_C_Interface.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <fstream>
#include <limits>
#include <memory>
#include <string>

#include "analysis/program/host_program.h"
#include "analysis/statistics/statistics.h"
#include "tests/seed.h"

namespace headrace::analysis {
namespace {

struct Best {
  double rate = -1;
  int changes = 0;
};

HostProblem DrawChain(Random* random) {
  HostProblem problem;
  const size_t n = 1 + random->Below(5);
  for (size_t s = 0; s < n; ++s) {
    HostStage stage;
    stage.name = "s" + std::to_string(s);
    stage.service_s = 0.0002 + 0.01 * random->Uniform();
    const int most = 1 + static_cast<int>(random->Below(6));
    stage.threads_now = 1 + static_cast<int>(random->Below(static_cast<uint64_t>(most)));
    const double bytes = random->Below(3) == 0 ? 0 : 1e6 * random->Uniform();
    stage.choices.emplace_back();
    for (int p = 1; p <= most; ++p) {
      stage.choices[0].push_back({p, 0, static_cast<double>(p), p * bytes});
    }
    if (s + 1 < n) stage.output = s + 1;
    problem.stages.push_back(stage);
  }
  problem.cores = std::numeric_limits<double>::infinity();
  problem.fixed_bytes = 1e6;
  problem.memory_bytes = random->Below(2) == 0 ? std::numeric_limits<double>::infinity()
                                               : 1e6 + 6e6 * random->Uniform();
  problem.least_s = 1 / (100 + 2000 * random->Uniform());
  return problem;
}

// -1 where it does not fit.
double RateOf(const HostProblem& problem, const std::vector<int>& threads) {
  double rate = 1 / problem.least_s, bytes = problem.fixed_bytes;
  for (size_t s = 0; s < threads.size(); ++s) {
    const HostStage& stage = problem.stages[s];
    rate = std::min(rate, threads[s] / stage.service_s);
    bytes += stage.choices[0][static_cast<size_t>(threads[s] - 1)].bytes;
  }
  return bytes <= problem.memory_bytes * (1 + 1e-12) ? rate : -1;
}

int ChangesOf(const HostProblem& problem, const std::vector<int>& threads) {
  int changes = 0;
  for (size_t s = 0; s < threads.size(); ++s)
    changes += threads[s] != problem.stages[s].threads_now;
  return changes;
}

// Highest rate, then fewest changed stages, over all settings.
Best Enumerate(const HostProblem& problem) {
  const size_t n = problem.stages.size();
  Best best;
  for (int pass = 0; pass < 2; ++pass) {
    std::vector<int> threads(n, 1);
    while (true) {
      const double rate = RateOf(problem, threads);
      if (pass == 0) {
        best.rate = std::max(best.rate, rate);
        best.changes = 1 << 20;
      } else if (rate >= best.rate * (1 - 1e-6) && rate > 0) {
        best.changes = std::min(best.changes, ChangesOf(problem, threads));
      }
      size_t digit = 0;
      while (digit < n &&
             ++threads[digit] > static_cast<int>(problem.stages[digit].choices[0].size())) {
        threads[digit++] = 1;
      }
      if (digit == n) break;
    }
  }
  return best;
}

TEST(SolveHost, EqualsEnumerationOnEverySmallChain) {
  const uint64_t seed = TestSeed(11);
  SCOPED_TRACE("HEADRACE_SEED=" + std::to_string(seed));
  Random random(seed);
  int feasible = 0;
  for (int i = 0; i < 300; ++i) {
    const HostProblem problem = DrawChain(&random);
    const Best best = Enumerate(problem);
    const std::optional<HostSolution> solution = SolveHost(problem);
    ASSERT_EQ(solution.has_value(), best.rate > 0) << "instance " << i;
    if (!solution) continue;
    ++feasible;
    EXPECT_NEAR(1 / solution->batch_s, best.rate, best.rate * 1e-6) << "instance " << i;
    std::vector<int> threads;
    for (const StageChoice& choice : solution->stages) threads.push_back(choice.threads);
    EXPECT_GE(RateOf(problem, threads), best.rate * (1 - 1e-6)) << "instance " << i;
    EXPECT_EQ(ChangesOf(problem, threads), best.changes) << "instance " << i;
  }
  EXPECT_GT(feasible, 200);
}

// A limit in whole bytes is a fraction of one less than what the best setting takes: rows and
// greedy search must agree about whether that fits.
TEST(SolveHost, AgreesWithItselfWhereTheMemoryIsExactlyFull) {
  Random random(5);
  for (int i = 0; i < 200; ++i) {
    HostProblem problem = DrawChain(&random);
    problem.fixed_bytes = 2e8 + 4e9 * random.Uniform();
    double full = problem.fixed_bytes;
    for (HostStage& stage : problem.stages) {
      stage.queue_now = 1 + static_cast<int>(random.Below(8));
      stage.queue_least = 1 + static_cast<int>(random.Below(uint64_t(stage.queue_now)));
      stage.element_bytes = stage.choices[0][0].bytes;
      full += stage.choices[0][size_t(stage.threads_now - 1)].bytes +
              stage.element_bytes * stage.queue_least;
    }
    problem.memory_bytes = full - 2 * random.Uniform();
    std::optional<HostSolution> solution;
    ASSERT_NO_THROW(solution = SolveHost(problem)) << "instance " << i;
    if (!solution) continue;
    EXPECT_TRUE(Evaluate(problem, &*solution)) << "instance " << i;
  }
}

// One stage of 8 ms and one of 2, an output that takes 1 ms to read back and 4 to write, a batch in
// an epoch of 10 and room for 5 of them.
TEST(SolveHost, KeepsWhatTheBudgetHoldsAndCountsTheFilling) {
  HostProblem problem;
  problem.stages.push_back({"fetch", 0.008, 0, 1, {}, {{{1, 0, 1, 0}}}, 1, 1, 1, 0});
  problem.stages.push_back({"decode", 0.002, 0, {}, {}, {{{1, 0, 1, 0}}}, 1, 1, 1, 0});
  problem.cores = 4;
  problem.memory_bytes = std::numeric_limits<double>::infinity();
  problem.tiers = {{"memory", 5e6, true}};
  problem.sites = {{0, 0, 10e6, 0.001, 0.004, true, 0, 0}};
  problem.epochs = 0;
  const std::optional<HostSolution> warm = SolveHost(problem);
  ASSERT_TRUE(warm);
  EXPECT_NEAR(warm->kept[0], 0.5, 1e-6);
  EXPECT_NEAR(warm->batch_s, 0.5 * 0.008 + 0.5 * 0.001, 1e-8);
  EXPECT_NEAR(warm->fill_s, 0.008 + 0.5 * 0.004, 1e-8);
  // (10 + (E - 1) * 4.5) / E against 8 ms: the filling has paid after the first epoch but one.
  problem.epochs = 1;
  EXPECT_EQ(SolveHost(problem)->kept[0], 0);
  problem.epochs = 2;
  EXPECT_NEAR(SolveHost(problem)->average_s, (0.010 + 0.0045) / 2, 1e-8);
}

// A sequential stage gains only by copies of it, which cost memory.
TEST(SolveHost, CopiesAreBoughtAsFarAsTheMemoryGoes) {
  HostProblem problem;
  problem.sets.push_back({"copies", {{1, 1e6}, {2, 2e6}, {3, 3e6}}, 0});
  HostStage stage{"parse", 0.006, 0.006, {}, 0, {}, 1, 1, 1, 0};
  for (int k = 1; k <= 3; ++k) stage.choices.push_back({{k, 1, static_cast<double>(k), 0}});
  problem.stages.push_back(stage);
  problem.cores = 8;
  problem.memory_bytes = 2.5e6;
  std::optional<HostSolution> solution = SolveHost(problem);
  ASSERT_TRUE(solution);
  EXPECT_EQ(solution->modes[0], 1u);
  EXPECT_NEAR(solution->batch_s, 0.003, 1e-8);
  problem.memory_bytes = 0.5e6;
  EXPECT_FALSE(SolveHost(problem));
}

TEST(SolveHost, WholeCoresAreBoughtOnlyForTheRateThatTheConsumerTakes) {
  HostProblem problem;
  HostStage stage{"parse", 0.006, 0.006, {}, {}, {{}}, 2, 1, 1, 0};
  for (int p = 1; p <= 8; ++p) stage.choices[0].push_back({p, 0, static_cast<double>(p), 0});
  problem.stages.push_back(stage);
  problem.cores = 16;
  problem.memory_bytes = std::numeric_limits<double>::infinity();
  problem.least_s = 0.00201;
  problem.price_per_core_hour = 0.05;
  problem.watts_per_core = 5;
  problem.yielded = 0.01;
  HostReport report;
  const std::optional<HostSolution> solution = SolveHost(problem, &report);
  ASSERT_TRUE(solution);
  EXPECT_EQ(solution->cores, 3);
  ASSERT_GE(report.objectives.size(), 4u);
  EXPECT_NEAR(report.objectives[1].value, 0.15, 1e-6);
  // 6 ms of a core in each 2.01 ms, less the share that may be given away.
  EXPECT_NEAR(report.objectives[2].value, 5 * 0.006 / 0.00201 * 0.99, 0.01);
}

TEST(SolveHost, WholeCoresAreBoughtForAPartOfACoreThatOtherProgramsLeave) {
  HostProblem problem;
  problem.stages.push_back({"parse", 0.006, 0.006, {}, {}, {{{4, 0, 4, 0}}}, 4, 1, 1, 0});
  problem.memory_bytes = std::numeric_limits<double>::infinity();
  problem.price_per_core_hour = 0.05;
  problem.yielded = 0.01;
  for (const auto& [cores, bought] : {std::pair(0.4, 1), {1.7, 2}, {2.0, 2}, {2.3, 3}}) {
    problem.cores = cores;
    const std::optional<HostSolution> solution = SolveHost(problem);
    ASSERT_TRUE(solution) << cores;
    EXPECT_NEAR(solution->batch_s, 0.006 / cores, 1e-8);
    EXPECT_EQ(solution->cores, bought) << cores;
  }
}

TEST(Program, InfeasibleIsAbsence) {
  Program program;
  const size_t x = program.Column("x", 0, 1, true);
  program.Row("impossible", {{x, 1}}, 2, HUGE_VAL);
  program.Objective({{x, 1}}, true);
  EXPECT_FALSE(program.Solve().has_value());
}

// Another reader of the format, the solver's own, must find the same optimum in it.
double SolvedFromLp(const std::string& lp) {
  const std::string path = testing::TempDir() + "program.lp";
  std::ofstream(path) << lp;
  const std::unique_ptr<Cbc_Model, void (*)(Cbc_Model*)> model(Cbc_newModel(), Cbc_deleteModel);
  EXPECT_EQ(Cbc_readLp(model.get(), path.c_str()), 0) << lp;
  Cbc_setLogLevel(model.get(), 0);
  Cbc_setParameter(model.get(), "ratioGap", "0");
  Cbc_setParameter(model.get(), "allowableGap", "0");
  Cbc_solve(model.get());
  EXPECT_TRUE(Cbc_isProvenOptimal(model.get())) << lp;
  return Cbc_getObjValue(model.get());
}

TEST(Program, LpFormatHoldsTheSameProgram) {
  const uint64_t seed = TestSeed(11);
  SCOPED_TRACE("HEADRACE_SEED=" + std::to_string(seed));
  Random random(seed);
  for (int trial = 0; trial < 50; ++trial) {
    Program program;
    // Names that no reader takes as they are: spaces, two alike once written, an exponent's start.
    const char* names[] = {"e2", "a b", "a_b", "9", "ü"};
    std::vector<std::pair<size_t, double>> objective, row;
    std::vector<int> most;
    for (const char* name : names) {
      most.push_back(1 + static_cast<int>(random.Below(5)));
      const size_t column = program.Column(name, 0, most.back(), true);
      objective.push_back({column, 1 + static_cast<double>(random.Below(9))});
      row.push_back({column, 1 + static_cast<double>(random.Below(7))});
    }
    const double limit = 8 + static_cast<double>(random.Below(20));
    program.Row("budget", row, -HUGE_VAL, limit);
    program.Row("both ends", {{0, 1.0}, {1, -1.0}}, -3, 3);
    program.Row("fixed", {{2, 1.0}, {3, 1.0}}, 1, 1);
    program.Objective(objective, true);
    const std::optional<std::vector<double>> values = program.Solve();
    ASSERT_TRUE(values);
    double value = 0;
    for (const auto& [column, cost] : objective) value += cost * (*values)[column];
    // Readers make a maximum the minimum of its negative.
    EXPECT_NEAR(std::abs(SolvedFromLp(program.Lp())), value, 1e-9);
  }
}

TEST(Program, SaysHowSurelyItIsTheOptimum) {
  Program program;
  const size_t x = program.Column("x", 0, 10, true);
  program.Row("limit", {{x, 2.0}}, -HUGE_VAL, 7);
  program.Objective({{x, 1}}, true);
  Proof proof;
  const std::optional<std::vector<double>> values = program.Solve(5, &proof);
  ASSERT_TRUE(values);
  EXPECT_EQ((*values)[x], 3);
  EXPECT_TRUE(proof.optimal);
  EXPECT_EQ(proof.gap, 0);
  EXPECT_EQ(proof.max_seconds, 5);
}

}  // namespace
}  // namespace headrace::analysis
