// A run's totals as metrics with labels, the same for OpenMetrics, Prometheus' older text format
// and OTLP. docs/metrics.md lists them; it is made from RunFamilies and the project's list of
// metrics.
//
// Units are base units: seconds, bytes, ratios from 0 to 1. What was not measured has no sample.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "collectors/store/read_store.h"

namespace headrace::dashboards {

struct MetricFamily {
  std::string name;  // without unit: "operator_busy"
  std::string unit;  // "seconds", "bytes", "ratio", ...; empty: a count
  bool counter = false;
  std::string help;

  struct Sample {
    std::vector<std::pair<std::string, std::string>> labels;
    double value = 0;
  };
  std::vector<Sample> samples;

  // "headrace_operator_busy_seconds"
  std::string full_name() const;
};

// Metrics made of the columns of summary views, in order of the page that lists them; no samples.
std::vector<MetricFamily> RunFamilies();

// How a metric of the store is named in base units, and what its values are divided by: pressure_ns
// is pressure, in seconds, over 1e9. `unit` is the store's: ns, bytes, count, ratio, cores, J, W,
// C, Hz, 1/s, B/s, bit/s.
struct BaseUnit {
  std::string name, unit;
  double divisor = 1;
};
BaseUnit InBaseUnits(std::string_view metric, std::string_view unit);

// All families of a run that have samples, by name; no two have the same full name, and no two
// samples of a family the same labels. Measurements by thread, and buckets of histograms, are left
// out: views thread_summary and io_histogram have them. Throws Error kBadData: no such run.
std::vector<MetricFamily> ReadRunMetrics(collectors::ReadStore& store, int64_t run_id);

}  // namespace headrace::dashboards
