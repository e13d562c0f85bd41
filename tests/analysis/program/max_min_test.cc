// The exact max-min solver against enumeration and against the integer program.
#include "analysis/program/max_min.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <limits>

#include "analysis/program/host_program.h"
#include "analysis/statistics/statistics.h"
#include "tests/seed.h"

namespace headrace::analysis {
namespace {

constexpr double kInfinite = std::numeric_limits<double>::infinity();

MaxMinProblem Draw(size_t n, Random* random) {
  MaxMinProblem problem;
  double least = 0;
  for (size_t s = 0; s < n; ++s) {
    problem.service_s.push_back(random->Below(10) == 0 ? 0 : 0.0002 + 0.01 * random->Uniform());
    problem.most.push_back(1 + static_cast<int>(random->Below(6)));
    problem.weight.push_back(random->Below(4) == 0 ? 0 : random->Uniform());
    least += problem.weight.back();
  }
  problem.budget = random->Below(3) == 0 ? kInfinite : least * (0.8 + 3 * random->Uniform());
  problem.most_rate = random->Below(3) == 0 ? kInfinite : 100 + 2000 * random->Uniform();
  return problem;
}

double Enumerate(const MaxMinProblem& problem) {
  const size_t n = problem.service_s.size();
  std::vector<int> threads(n, 1);
  double best = -1;
  while (true) {
    double rate = problem.most_rate, bill = 0;
    for (size_t s = 0; s < n; ++s) {
      if (problem.service_s[s] > 0) rate = std::min(rate, threads[s] / problem.service_s[s]);
      bill += threads[s] * problem.weight[s];
    }
    if (bill <= problem.budget) best = std::max(best, rate);
    size_t digit = 0;
    while (digit < n && ++threads[digit] > problem.most[digit]) threads[digit++] = 1;
    if (digit == n) return best;
  }
}

TEST(MaxMin, EqualsEnumeration) {
  SCOPED_TRACE("HEADRACE_SEED=" + std::to_string(TestSeed(13)));
  Random random(TestSeed(13));
  int feasible = 0;
  for (int i = 0; i < 2000; ++i) {
    const MaxMinProblem problem = Draw(1 + random.Below(5), &random);
    const double best = Enumerate(problem);
    const std::optional<MaxMinSolution> solution = SolveMaxMin(problem);
    ASSERT_EQ(solution.has_value(), best >= 0) << "instance " << i;
    if (!solution) continue;
    ++feasible;
    if (std::isinf(best)) {
      EXPECT_TRUE(std::isinf(solution->rate)) << "instance " << i;
      continue;
    }
    EXPECT_NEAR(solution->rate, best, best * 1e-9) << "instance " << i;
    double bill = 0;
    for (size_t s = 0; s < problem.service_s.size(); ++s) {
      EXPECT_LE(solution->threads[s], problem.most[s]) << "instance " << i;
      bill += solution->threads[s] * problem.weight[s];
    }
    EXPECT_LE(bill, problem.budget * (1 + 1e-9)) << "instance " << i;
  }
  EXPECT_GT(feasible, 1000);
}

TEST(MaxMin, EqualsTheIntegerProgram) {
  SCOPED_TRACE("HEADRACE_SEED=" + std::to_string(TestSeed(13)));
  Random random(TestSeed(13) + 1);
  for (int i = 0; i < 60; ++i) {
    const size_t n = 2 + random.Below(8);
    MaxMinProblem problem = Draw(n, &random);
    HostProblem host;
    for (size_t s = 0; s < n; ++s) {
      problem.service_s[s] += 1e-4;
      problem.most[s] = 32;
      HostStage stage;
      stage.name = std::to_string(s);
      stage.service_s = problem.service_s[s];
      stage.choices.emplace_back();
      for (int p = 1; p <= 32; ++p) {
        stage.choices[0].push_back({p, 0, static_cast<double>(p), p * problem.weight[s] * 1e8});
      }
      host.stages.push_back(std::move(stage));
    }
    host.cores = kInfinite;
    host.memory_bytes = problem.budget * 1e8;
    host.least_s = 1 / problem.most_rate;
    const std::optional<MaxMinSolution> ours = SolveMaxMin(problem);
    const std::optional<HostSolution> theirs = SolveHost(host);
    ASSERT_EQ(ours.has_value(), theirs.has_value()) << "instance " << i;
    if (ours) {
      EXPECT_NEAR(ours->rate * theirs->batch_s, 1, 1e-6) << "instance " << i;
    }
  }
}

TEST(MaxMin, AThousandOperatorsFillTheBudgetToTheLastThread) {
  Random random(TestSeed(13));
  MaxMinProblem problem;
  for (int s = 0; s < 1000; ++s) {
    problem.service_s.push_back(0.05 + 2 * random.Uniform());
    problem.most.push_back(100000);
    problem.weight.push_back(1);
  }
  problem.budget = 4000;
  problem.most_rate = kInfinite;
  const std::optional<MaxMinSolution> solution = SolveMaxMin(problem);
  ASSERT_TRUE(solution.has_value());
  double used = 0, next = 0;
  for (size_t s = 0; s < 1000; ++s) {
    used += solution->threads[s];
    EXPECT_GE(solution->threads[s] / problem.service_s[s], solution->rate * (1 - 1e-9));
    next += std::ceil(problem.service_s[s] * solution->rate * (1 + 1e-6));
  }
  EXPECT_LE(used, 4000);
  EXPECT_GT(next, 4000) << "a higher rate would have fitted";
}

TEST(MaxMin, NothingFitsIsAbsence) {
  MaxMinProblem problem;
  problem.service_s = {1, 1};
  problem.most = {4, 4};
  problem.weight = {1, 1};
  problem.budget = 1.5;
  problem.most_rate = kInfinite;
  EXPECT_FALSE(SolveMaxMin(problem).has_value());
}

}  // namespace
}  // namespace headrace::analysis
