#include "probes/metric.h"

#include <algorithm>

namespace headrace::probes {

const std::vector<Metric>& Metrics() {
  static const std::vector<Metric> metrics = [] {
    [[maybe_unused]] constexpr auto counter = MetricKind::kCounter;
    [[maybe_unused]] constexpr auto gauge = MetricKind::kGauge;
    std::vector<Metric> list = {
#define HR_METRIC(name, unit, kind, source, privilege, help) \
  Metric{name, unit, kind, Source::source, privilege, help},
#include "probes/metrics/bpf.def"
#include "probes/metrics/collector.def"
#include "probes/metrics/host.def"
#include "probes/metrics/links.def"
#include "probes/metrics/perf.def"
#include "probes/metrics/stack.def"
#undef HR_METRIC
    };
    std::sort(list.begin(), list.end(),
              [](const Metric& a, const Metric& b) { return a.name < b.name; });
    return list;
  }();
  return metrics;
}

const Metric* FindMetric(std::string_view name) {
  const auto& all = Metrics();
  const auto it = std::lower_bound(all.begin(), all.end(), name,
                                   [](const Metric& m, std::string_view n) { return m.name < n; });
  return it != all.end() && it->name == name ? &*it : nullptr;
}

bool HasUnitSuffix(const Metric& metric) {
  struct Pair {
    std::string_view suffix, unit;
  };
  static constexpr Pair kPairs[] = {
      {"_ns", "ns"},       {"_bytes", "bytes"},     {"_count", "count"}, {"_ratio", "ratio"},
      {"_cores", "cores"}, {"_joules", "J"},        {"_watts", "W"},     {"_celsius", "C"},
      {"_hertz", "Hz"},    {"_bytes_per_s", "B/s"}, {"_per_s", "1/s"},   {"_bits_per_s", "bit/s"}};
  return std::any_of(std::begin(kPairs), std::end(kPairs), [&](const Pair& p) {
    return metric.name.ends_with(p.suffix) && metric.unit == p.unit;
  });
}

}  // namespace headrace::probes
