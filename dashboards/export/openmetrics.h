// OpenMetrics, as a scrape of a server gives it, and Prometheus' older text format, which the
// textfile collector of node_exporter and `promtool check metrics` read.
#pragma once
#include <cstdint>
#include <string>

#include "collectors/store/read_store.h"

namespace headrace::dashboards {

// Content-Type of OpenMetrics.
inline constexpr const char* kOpenMetricsType =
    "application/openmetrics-text; version=1.0.0; charset=utf-8";

// The run's totals; ends in "# EOF". Throws Error kBadData: no such run.
std::string OpenMetrics(collectors::ReadStore& store, int64_t run_id);

// The same in Prometheus' text format, version 0.0.4 (Content-Type text/plain; version=0.0.4).
std::string PrometheusText(collectors::ReadStore& store, int64_t run_id);

}  // namespace headrace::dashboards
