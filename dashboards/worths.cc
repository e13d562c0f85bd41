#include "dashboards/worths.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "analysis/model/limits/limit_kind.h"
#include "analysis/thresholds.h"
#include "dashboards/json_number.h"

namespace headrace::dashboards {

std::string WorthsText(const std::vector<analysis::Worth>& worths) {
  std::string text = "\ngain from one more, each alone\n", nothing;
  size_t name = 0, what = 0;
  for (const analysis::Worth& worth : worths) {
    name = std::max(name, analysis::Describe(worth.limit).size());
    what = std::max(what, worth.what.size());
  }
  for (const analysis::Worth& worth : worths) {
    if (worth.gain < analysis::kNoGain) {
      nothing += fmt::format("{}{}, {}", nothing.empty() ? "" : "; ",
                             analysis::Describe(worth.limit), worth.what);
      continue;
    }
    text += fmt::format("  {:<{}}  {:<{}}  {:+.0f} % [{:.0f}, {:.0f}], then limited by {}\n",
                        analysis::Describe(worth.limit), name, worth.what, what, 100 * worth.gain,
                        100 * worth.interval.low, 100 * worth.interval.high,
                        analysis::Describe(worth.then));
  }
  if (!nothing.empty()) text += fmt::format("  nothing (under 1 %): {}\n", nothing);
  return text;
}

nlohmann::ordered_json WorthsJson(const std::vector<analysis::Worth>& worths) {
  nlohmann::ordered_json out = nlohmann::ordered_json::array();
  for (const analysis::Worth& worth : worths) {
    out.push_back({{"resource", worth.limit.name},
                   {"kind", worth.limit.kind_name()},
                   {"change", worth.what},
                   {"batches_per_second", worth.rate},
                   {"gain_ratio", worth.gain},
                   {"gain_interval", IntervalJson(worth.interval, 0.9)},
                   {"then_limited_by", LimitJson(worth.then)}});
  }
  return out;
}

nlohmann::ordered_json LimitJson(const analysis::Limit& limit) {
  return {{"name", limit.name},
          {"kind", limit.kind_name()},
          {"batches_per_second", NumberOrNull(limit.bound)}};
}

}  // namespace headrace::dashboards
