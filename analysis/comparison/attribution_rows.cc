#include "analysis/comparison/attribution_rows.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "analysis/thresholds.h"

namespace headrace::analysis {

double LogMean(double a, double b) {
  if (a <= 0 || b <= 0) return 0;
  const double ratio = std::log(b / a);
  return std::abs(ratio) < 1e-9 ? (a + b) / 2 : (b - a) / ratio;
}

Attribution UnavailableAttribution(std::string why) {
  Attribution result;
  result.unavailable = std::move(why);
  return result;
}

void CloseRows(const AttributionOptions& options, double measured, const std::string& outside,
               const std::string& unexplained_name, const SharePart& unexplained,
               Attribution* result) {
  std::stable_sort(result->rows.begin(), result->rows.end(),
                   [](const AttributionRow& x, const AttributionRow& y) {
                     const double by_x = std::abs(x.throughput.value);
                     const double by_y = std::abs(y.throughput.value);
                     if (by_x != by_y) return by_x > by_y;
                     return std::abs(x.cpu_share.value_or(0)) > std::abs(y.cpu_share.value_or(0));
                   });
  const double beyond = result->log_ratio.value - measured;
  result->log_ratio.interval.low += beyond;
  result->log_ratio.interval.high += beyond;
  const bool apart = std::abs(beyond) >= kOutsidePhaseRow;
  if (apart) {
    AttributionRow row;
    row.to = AttributedTo::kOutsidePhase;
    row.name = options.outside.empty() ? outside : options.outside;
    row.throughput = {beyond, {beyond, beyond}};
    row.told = std::abs(beyond) > kOutsidePhaseTold;
    result->rows.push_back(row);
  }
  AttributionRow rest;
  rest.to = AttributedTo::kUnexplained;
  rest.name = unexplained_name;
  rest.throughput = unexplained;
  if (!apart) rest.throughput.value += beyond;
  rest.told = rest.throughput.interval.low > 0 || rest.throughput.interval.high < 0;
  result->rows.push_back(rest);
}

}  // namespace headrace::analysis
