// The integer program against enumeration of every setting of small chains.
#include "analysis/program.h"

#include <Cbc_C_Interface.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <fstream>
#include <limits>
#include <memory>
#include <string>

#include "analysis/allocation.h"
#include "analysis/statistics.h"

namespace headrace::analysis {
namespace {

struct Best {
  double rate = -1;
  int changes = 0, threads = 0;
};

double RateOf(const ChainProblem& problem, const std::vector<int>& threads) {
  double rate = problem.shared_bound, bytes = problem.fixed_bytes;
  for (size_t s = 0; s < threads.size(); ++s) {
    rate = std::min(rate, threads[s] / problem.stage_s[s]);
    bytes += threads[s] * problem.thread_bytes[s];
  }
  return bytes <= problem.memory_bytes * (1 + 1e-12) ? rate : -1;
}

// Highest rate, then fewest changed stages, then fewest threads, over all settings.
Best Enumerate(const ChainProblem& problem) {
  const size_t n = problem.stage_s.size();
  Best best;
  for (int pass = 0; pass < 2; ++pass) {
    std::vector<int> threads(n, 1);
    while (true) {
      const double rate = RateOf(problem, threads);
      int changes = 0, total = 0;
      for (size_t s = 0; s < n; ++s) {
        changes += threads[s] != problem.now[s];
        total += threads[s];
      }
      if (pass == 0) {
        best.rate = std::max(best.rate, rate);
        best.changes = best.threads = 1 << 20;
      } else if (rate >= best.rate * (1 - 1e-6) && rate > 0 &&
                 std::pair(changes, total) < std::pair(best.changes, best.threads)) {
        best.changes = changes;
        best.threads = total;
      }
      size_t digit = 0;
      while (digit < n && ++threads[digit] > problem.max_threads[digit]) threads[digit++] = 1;
      if (digit == n) break;
    }
  }
  return best;
}

TEST(SolveChain, EqualsEnumerationOnEverySmallChain) {
  const char* text = std::getenv("HEADRACE_SEED");
  const uint64_t seed = text != nullptr ? std::strtoull(text, nullptr, 10) : 11;
  SCOPED_TRACE("HEADRACE_SEED=" + std::to_string(seed));
  Random random(seed);
  int feasible = 0;
  for (int i = 0; i < 300; ++i) {
    ChainProblem problem;
    const size_t n = 1 + random.Below(5);
    for (size_t s = 0; s < n; ++s) {
      problem.stage_s.push_back(0.0002 + 0.01 * random.Uniform());
      problem.max_threads.push_back(1 + static_cast<int>(random.Below(6)));
      problem.now.push_back(
          1 + static_cast<int>(random.Below(static_cast<uint64_t>(problem.max_threads.back()))));
      problem.thread_bytes.push_back(random.Below(3) == 0 ? 0 : 1e6 * random.Uniform());
    }
    problem.fixed_bytes = 1e6;
    problem.memory_bytes = random.Below(2) == 0 ? std::numeric_limits<double>::infinity()
                                                : 1e6 + 6e6 * random.Uniform();
    problem.shared_bound = 100 + 2000 * random.Uniform();
    const Best best = Enumerate(problem);
    const std::optional<ChainSolution> solution = SolveChain(problem);
    ASSERT_EQ(solution.has_value(), best.rate > 0) << "instance " << i;
    if (!solution) continue;
    ++feasible;
    EXPECT_NEAR(solution->rate, best.rate, best.rate * 1e-6) << "instance " << i;
    EXPECT_GE(RateOf(problem, solution->threads), best.rate * (1 - 1e-6)) << "instance " << i;
    int changes = 0, total = 0;
    for (size_t s = 0; s < n; ++s) {
      changes += solution->threads[s] != problem.now[s];
      total += solution->threads[s];
    }
    EXPECT_EQ(changes, best.changes) << "instance " << i;
    EXPECT_EQ(total, best.threads) << "instance " << i;
  }
  EXPECT_GT(feasible, 200);
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
  const char* text = std::getenv("HEADRACE_SEED");
  const uint64_t seed = text != nullptr ? std::strtoull(text, nullptr, 10) : 11;
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
