#include "analysis/phases.h"

#include "analysis/statistics.h"

namespace headrace::analysis {

std::pair<size_t, size_t> SteadyRange(const std::vector<double>& rates) {
  if (rates.size() < 3) return {0, rates.size()};
  const double typical =
      Quantile({rates.begin() + static_cast<long>(rates.size() / 3), rates.end()}, 0.5);
  size_t first = 0, last = rates.size();
  while (first < last && rates[first] < 0.8 * typical) ++first;
  while (last > first && rates[last - 1] < 0.8 * typical) --last;
  if (last - first >= 5) ++first;
  if (last - first >= 5) --last;
  if (last <= first) return {0, rates.size()};
  return {first, last};
}

}  // namespace headrace::analysis
