// Max-min: the exact integer optimum of the core of every allocation, without a solver: the highest
// rate X such that p_s >= service_s * X threads for each stage fit one budget. The parametric
// method: the least threads for a given X are ceil(service_s * X), their bill grows with X, so X is
// found by bisection and then moved up to the exact breakpoint. O(n log(1 / precision)). What
// the integer program must find on that core: tests hold it against this.
#pragma once
#include <optional>
#include <vector>

namespace headrace::analysis {

struct MaxMinProblem {
  std::vector<double> service_s;  // seconds per batch of one thread of the stage; 0: never a limit
  std::vector<int> most;          // threads of the stage at most
  std::vector<double> weight;     // what one thread takes of the budget (bytes, cores); may be 0
  double budget = 0;              // infinite: none
  double most_rate = 0;           // bound of everything that threads do not change; infinite: none
};
struct MaxMinSolution {
  double rate = 0;
  std::vector<int> threads;  // the fewest that reach it
};

// Empty when one thread for each stage is over the budget.
std::optional<MaxMinSolution> SolveMaxMin(const MaxMinProblem& problem);

}  // namespace headrace::analysis
