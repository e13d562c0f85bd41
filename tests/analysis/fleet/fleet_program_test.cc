// The program of a fleet against enumeration of every fleet.
#include "analysis/fleet/fleet_program.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <limits>
#include <tuple>

#include "analysis/statistics/statistics.h"
#include "tests/seed.h"

namespace headrace::analysis {
namespace {

struct Cost {
  double price = std::numeric_limits<double>::infinity(), watts = 0;
  int nodes = 0;
  bool operator<(const Cost& other) const {
    // Prices and watts are of a few digits, so that equal sums are equal.
    const auto rank = [](double v) { return std::llround(v * 1000); };
    if (!std::isfinite(price) || !std::isfinite(other.price)) return price < other.price;
    return std::tuple(rank(price), rank(watts), nodes) <
           std::tuple(rank(other.price), rank(other.watts), other.nodes);
  }
};

Cost CostOf(const FleetProblem& problem, const std::vector<int>& counts, bool power) {
  Cost cost{0, 0, 0};
  double rate = 0;
  for (size_t t = 0; t < counts.size(); ++t) {
    rate += counts[t] * problem.types[t].rows_per_s;
    cost.price += counts[t] * problem.types[t].price_per_hour;
    if (power) cost.watts += counts[t] * problem.types[t].watts.value_or(0);
    cost.nodes += counts[t];
  }
  if (rate < problem.target * (1 - 1e-6)) return {};
  for (const FleetLimit& limit : problem.limits) {
    if (limit.rows_per_s < problem.target * (1 - 1e-6)) return {};
  }
  return cost;
}

Cost Enumerate(const FleetProblem& problem, bool power) {
  Cost best;
  std::vector<int> counts(problem.types.size(), 0);
  while (true) {
    const Cost cost = CostOf(problem, counts, power);
    if (cost < best) best = cost;
    size_t digit = 0;
    while (digit < counts.size() && ++counts[digit] > *problem.types[digit].max_count)
      counts[digit++] = 0;
    if (digit == counts.size()) return best;
  }
}

FleetProblem RandomProblem(Random* random) {
  FleetProblem problem;
  problem.target = 1000 + static_cast<double>(random->Below(50000));
  const bool power = random->Below(3) > 0;
  const size_t types = 1 + random->Below(4);
  for (size_t t = 0; t < types; ++t) {
    FleetType type;
    type.name = "t " + std::to_string(t);
    type.rows_per_s = 500 + static_cast<double>(random->Below(8000));
    type.price_per_hour = static_cast<double>(random->Below(8)) * 0.25;
    if (power || random->Below(4) == 0)
      type.watts = 50 + static_cast<double>(random->Below(5) * 50);
    type.max_count = static_cast<int>(random->Below(9));
    problem.types.push_back(type);
  }
  if (random->Below(2) == 0)
    problem.limits.push_back(
        {"storage bandwidth", 500 + static_cast<double>(random->Below(100000))});
  return problem;
}

TEST(FleetProgram, EqualsEnumerationOfEveryFleet) {
  const uint64_t seed = TestSeed(20261122);
  SCOPED_TRACE("HEADRACE_SEED=" + std::to_string(seed));
  Random random(seed);
  int feasible = 0;
  for (int i = 0; i < 300; ++i) {
    SCOPED_TRACE(i);
    const FleetProblem problem = RandomProblem(&random);
    bool power = true;
    for (const FleetType& type : problem.types)
      power = power && (type.watts || *type.max_count == 0);
    const Cost best = Enumerate(problem, power);
    const auto counts = SolveFleet(problem);
    ASSERT_EQ(counts.has_value(), std::isfinite(best.price));
    if (!counts) continue;
    ++feasible;
    const Cost found = CostOf(problem, *counts, power);
    EXPECT_NEAR(found.price, best.price, 1e-6);
    EXPECT_NEAR(found.watts, best.watts, 1e-6);
    EXPECT_EQ(found.nodes, best.nodes);
  }
  EXPECT_GT(feasible, 60);
  EXPECT_LT(feasible, 290);
}

TEST(FleetProgram, APlanThatPreprocessingLoses) {
  FleetProblem problem;
  problem.target = 29465;
  problem.types = {{"a", 5066, 1.75, 100, 4},
                   {"b", 5768, 1.25, 200, 6},
                   {"c", 4069, 1, 100, 0},
                   {"d", 2165, 0.5, 150, 2}};
  // Five of b and one of d cost 6.75 an hour.
  EXPECT_THAT(SolveFleet(problem), testing::Optional(testing::ElementsAre(0, 5, 0, 1)));
}

TEST(FleetProgram, TakesTheCheaperTypeAndThenTheOneWithLessPower) {
  FleetProblem problem;
  problem.target = 100;
  problem.types = {{"dear", 50, 3, 10, {}}, {"hungry", 50, 2, 200, {}}, {"lean", 50, 2, 100, {}}};
  EXPECT_THAT(SolveFleet(problem), testing::Optional(testing::ElementsAre(0, 0, 2)));
  problem.types[2].watts.reset();  // now power is not known of all
  const auto counts = SolveFleet(problem);
  ASSERT_TRUE(counts);
  EXPECT_EQ((*counts)[0], 0);
}

TEST(FleetProgram, AHundredThousandNodesAreNoTrouble) {
  FleetProblem problem;
  problem.target = 1e9;
  problem.types = {{"a", 11623, 0.8, 280, {}}, {"b", 23100, 1.5, 420, {}}};
  const auto counts = SolveFleet(problem);
  ASSERT_TRUE(counts);
  EXPECT_GE((*counts)[0] * 11623.0 + (*counts)[1] * 23100.0, 1e9 * (1 - 1e-6));
}

TEST(FleetProgram, WordsAndLpNameWhatIsSolved) {
  FleetProblem problem;
  problem.target = 1000;
  problem.types = {{"c-v1", 300, 0.8, {}, 7}, {"c v2", 0, 1, {}, {}}};
  problem.limits = {{"storage bandwidth", 5000},
                    {"the dispatcher", std::numeric_limits<double>::infinity()}};
  std::string words, lp;
  SolveFleet(problem, &words, &lp);
  EXPECT_THAT(words, testing::HasSubstr("least price"));
  EXPECT_THAT(words, testing::HasSubstr("X <= 5000 rows/s  (storage bandwidth)"));
  EXPECT_THAT(words, testing::Not(testing::HasSubstr("inf")));
  EXPECT_THAT(lp, testing::HasSubstr("Minimize"));
  EXPECT_THAT(lp, testing::HasSubstr("storage"));
  EXPECT_THAT(lp, testing::Not(testing::HasSubstr("inf")));
}

// Coefficients of 1e7 and more made the solver call these infeasible.
TEST(FleetProgram, NodesFarBeyondTheTargetAndFarBelowIt) {
  for (const double target : {1e-3, 0.05, 1.0, 1e3, 1e9, 1.8e10}) {
    SCOPED_TRACE(target);
    FleetProblem problem;
    problem.target = target;
    problem.types = {{"a", 18000, 1, {}, {}}, {"b", 36000, 3, 100, {}}};
    const auto counts = SolveFleet(problem);
    ASSERT_TRUE(counts);
    const double needed = std::max(1.0, std::ceil(target / 18000 - 1e-7));
    EXPECT_NEAR((*counts)[0], needed, 1e-6 * needed);
    EXPECT_EQ((*counts)[1], 0);
  }
}

TEST(FleetProgram, ATypeThatNobodyBuysDoesNotHideWhatOthersCost) {
  FleetProblem problem;
  problem.target = 8000;
  problem.types = {
      {"dear", 1000, 1e6, {}, {}}, {"twice", 1000, 2e-4, {}, {}}, {"cheap", 1000, 1e-4, {}, {}}};
  std::string text;
  EXPECT_EQ(SolveFleet(problem, &text), (std::vector<int>{0, 0, 8}));
  EXPECT_THAT(text, testing::HasSubstr("N(dear) <= 0  (another type alone costs less)"));
  problem.types[1].max_count = problem.types[2].max_count = 3;  // now two of it are bought
  EXPECT_EQ(SolveFleet(problem), (std::vector<int>{2, 3, 3}));
}

}  // namespace
}  // namespace headrace::analysis
