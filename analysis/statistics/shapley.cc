#include "analysis/statistics/shapley.h"

#include <algorithm>
#include <bit>
#include <numeric>
#include <unordered_map>

#include "analysis/statistics/statistics.h"
#include "base/check.h"

namespace headrace::analysis {
namespace {

// The weight of a set S of changes made before another change, |S|! (n - |S| - 1)! / n!: the share
// of all orders in which exactly these changes come first. `before` is |S|, `changes` is n.
double WeightOf(size_t before, size_t changes) {
  double weight = 1.0 / static_cast<double>(changes);
  // 1 / (n C(n - 1, |S|))
  for (size_t i = 1; i <= before; ++i) {
    weight *= static_cast<double>(i) / static_cast<double>(changes - i);
  }
  return weight;
}

ShapleyValues Exact(size_t changes, const ValueOf& value) {
  ShapleyValues result;
  result.values.assign(changes, 0);
  const uint64_t sets = uint64_t{1} << changes;
  std::vector<double> values;
  for (uint64_t set = 0; set < sets; ++set) values.push_back(value(set));
  for (uint64_t set = 0; set < sets; ++set) {
    const double weight = WeightOf(static_cast<size_t>(std::popcount(set)), changes);
    for (size_t i = 0; i < changes; ++i) {
      const uint64_t with = set | uint64_t{1} << i;
      if (with != set) result.values[i] += weight * (values[with] - values[set]);
    }
  }
  result.evaluations = sets;
  return result;
}

ShapleyValues Sampled(size_t changes, const ValueOf& value, size_t orders, uint64_t seed) {
  ShapleyValues result;
  result.exact = false;
  result.orders = std::max<size_t>(2, orders / 2 * 2);
  result.values.assign(changes, 0);
  std::unordered_map<uint64_t, double> known;
  const auto remembered = [&](uint64_t set) {
    const auto [it, added] = known.try_emplace(set, 0);
    if (added) it->second = value(set);
    return it->second;
  };
  Random random(seed);
  std::vector<size_t> order(changes);
  std::iota(order.begin(), order.end(), size_t{0});
  for (size_t round = 0; round < result.orders; ++round) {
    if (round % 2 == 0) {
      for (size_t i = changes; i > 1; --i) std::swap(order[i - 1], order[random.Below(i)]);
    } else {
      std::reverse(order.begin(), order.end());
    }
    uint64_t set = 0;
    double before = remembered(0);
    for (const size_t change : order) {
      set |= uint64_t{1} << change;
      const double after = remembered(set);
      result.values[change] += (after - before) / static_cast<double>(result.orders);
      before = after;
    }
  }
  result.evaluations = known.size();
  return result;
}

}  // namespace

ShapleyValues Shapley(size_t changes, const ValueOf& value, size_t most_exact, size_t orders,
                      uint64_t seed) {
  HR_CHECK(changes < 64, "too many changes");
  if (changes <= most_exact) return Exact(changes, value);
  return Sampled(changes, value, orders, seed);
}

}  // namespace headrace::analysis
