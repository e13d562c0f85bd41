#include "analysis/program/max_min.h"

#include <algorithm>
#include <cmath>

#include "base/infinite.h"

namespace headrace::analysis {
namespace {

constexpr double kQuotientRound = 1e-12;  // of a quotient that is a whole number but for rounding

int Needed(double service_s, double rate) {
  return std::max(1, static_cast<int>(std::ceil(service_s * rate * (1 - kQuotientRound))));
}

double Bill(const MaxMinProblem& problem, double rate) {
  double bill = 0;
  for (size_t s = 0; s < problem.service_s.size(); ++s) {
    bill += problem.weight[s] * Needed(problem.service_s[s], rate);
  }
  return bill;
}

// The highest rate that the threads needed for `rate` reach.
double Reached(const MaxMinProblem& problem, double rate) {
  double reached = kInfinite;
  for (double service_s : problem.service_s) {
    if (service_s > 0) reached = std::min(reached, Needed(service_s, rate) / service_s);
  }
  return reached;
}

}  // namespace

std::optional<MaxMinSolution> SolveMaxMin(const MaxMinProblem& problem) {
  const double budget = problem.budget * (1 + kQuotientRound);
  if (Bill(problem, 0) > budget) return std::nullopt;
  double most = problem.most_rate;
  for (size_t s = 0; s < problem.service_s.size(); ++s) {
    if (problem.service_s[s] > 0) {
      most = std::min(most, std::max(1, problem.most[s]) / problem.service_s[s]);
    }
  }
  MaxMinSolution solution;
  if (!std::isfinite(most)) {  // nothing limits
    solution.rate = kInfinite;
    solution.threads.assign(problem.service_s.size(), 1);
    return solution;
  }
  double rate = most;
  if (Bill(problem, most) > budget) {
    double low = 0, high = most;
    for (int i = 0; i < 60 && high - low > 1e-13 * high; ++i) {
      const double middle = (low + high) / 2;
      (Bill(problem, middle) <= budget ? low : high) = middle;
    }
    // The threads needed just below the optimum reach it; the loop ends at once but for breakpoints
    // closer together than the bisection tells apart.
    rate = Reached(problem, low);
    while (rate < most && Bill(problem, rate * (1 + 1e-9)) <= budget) {
      rate = Reached(problem, rate * (1 + 1e-9));
    }
    rate = std::min(rate, most);
  }
  solution.rate = rate;
  for (double service_s : problem.service_s) solution.threads.push_back(Needed(service_s, rate));
  return solution;
}

}  // namespace headrace::analysis
