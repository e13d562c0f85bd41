// Shapley: divides the joint effect of a set of changes among the changes (L. S. Shapley, A Value
// for n-Person Games, 1953). A change's value is what it adds to those before it, averaged over all
// orders in which the changes may be made. The values sum to value(all) - value(none), whatever the
// function; a change that never matters gets 0, and changes that are alike get the same.
#pragma once
#include <cstdint>
#include <functional>
#include <vector>

namespace headrace::analysis {

// The value when the changes with their bit set are made. Called once for each set that is needed.
using ValueOf = std::function<double(uint64_t changed)>;

struct ShapleyValues {
  std::vector<double> values;  // by change
  bool exact = true;           // over all orders; else over `orders` drawn ones
  size_t orders = 0;
  size_t evaluations = 0;
};

// Shapley values of `changes` changes, at most 63. Up to `most_exact` changes, all 2^n sets are
// evaluated. With more, `orders` orders are drawn by `seed`, each with its reverse (antithetic:
// Mitchell, Cooper, Frank and Holmes, Sampling Permutations for Shapley Value Estimation, JMLR 23,
// 2022): then the sum is exact, and its division is an estimate.
ShapleyValues Shapley(size_t changes, const ValueOf& value, size_t most_exact, size_t orders,
                      uint64_t seed);

}  // namespace headrace::analysis
