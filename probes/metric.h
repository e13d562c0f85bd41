// The list of metrics: every measured figure with its unit and meaning. The .def files in
// probes/metrics are the list; it is written into every run, so that a run explains itself.
#pragma once
#include <cstdint>
#include <string_view>
#include <vector>

#include "base/quantity.h"

namespace headrace::probes {

enum class MetricKind : uint8_t {
  kCounter,  // grows from 0 at the probe's start; its last value is the total
  kGauge     // a level; has a mean and a range
};

struct Metric {
  std::string_view name;  // ends in its unit: _ns, _bytes, _count, _ratio, _cores, _joules, ...
  std::string_view unit;
  MetricKind kind;
  Source source;               // where its values come from, unless a measurement says otherwise
  std::string_view privilege;  // what reading it needs: "none", "same user", "CAP_PERFMON", ...
  std::string_view help;       // one sentence for people
};

// All metrics, sorted by name.
const std::vector<Metric>& Metrics();
// Null if there is none of that name.
const Metric* FindMetric(std::string_view name);
// True if the name ends in a suffix that matches the unit.
bool HasUnitSuffix(const Metric& metric);

}  // namespace headrace::probes
