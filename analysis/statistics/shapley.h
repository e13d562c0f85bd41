// Shapley: divides what a set of changes makes together among the changes (L. S. Shapley, A Value
// for n-Person Games, 1953). A change's value is what it adds to those before it, averaged over all
// orders in which the changes may be made. The values sum to value(all) - value(none), whatever the
// function; a change that never matters gets 0, and changes that are alike get the same.
#pragma once
#include <cstdint>
#include <functional>
#include <vector>

namespace headrace::analysis {

// Of the changes with their bit set, the value: called once for each set that is needed.
using ValueOf = std::function<double(uint64_t changed)>;

struct ShapleyValues {
  std::vector<double> values;  // by change
  bool exact = true;           // all orders; else the number of orders drawn
  size_t orders = 0;
  size_t evaluations = 0;
};

// Of `changes` (at most 63) changes. Up to `most_exact` of them all 2^n sets are evaluated; of
// more, `orders` orders are drawn by `seed`, each with its reverse (antithetic: Mitchell, Cooper,
// Frank and Holmes, Sampling Permutations for Shapley Value Estimation, JMLR 23, 2022): the sum is
// exact, how it is divided an estimate.
ShapleyValues Shapley(size_t changes, const ValueOf& value, size_t most_exact, size_t orders,
                      uint64_t seed);

}  // namespace headrace::analysis
