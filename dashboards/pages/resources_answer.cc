// What the machine did while the run went on: small charts of cores, pressure, memory and devices.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>

#include "dashboards/pages/course.h"
#include "dashboards/pages/page_run.h"
#include "dashboards/pages/short_number.h"
#include "dashboards/sql_values.h"

namespace headrace::dashboards {
namespace {

using Json = nlohmann::ordered_json;

struct Series {
  const char *key, *title, *unit;
  const char* metric;
  const char* cause;  // null: any
  double scale;       // of a counter's growth a second, or of a gauge
  bool of_cores;      // whether the machine's cores are the most there can be
  bool of_one;        // whether 1 is
};

constexpr Series kSeries[] = {
    {"process", "Cores used by this program", "cores", "process_cpu_ns", nullptr, 1e-9, true,
     false},
    {"busy", "Cores in use, whole machine", "cores", "host_busy_cores", nullptr, 1, true, false},
    {"psi_cpu", "CPU pressure (some thread waits)", "ratio", "pressure_ns", "cpu some", 1e-9, false,
     true},
    {"psi_io", "IO pressure (some thread waits)", "ratio", "pressure_ns", "io some", 1e-9, false,
     true},
    {"psi_memory", "Memory pressure (some thread waits)", "ratio", "pressure_ns", "memory some",
     1e-9, false, true},
    {"steal", "Cores taken by the hypervisor", "cores", "steal_ns", nullptr, 1e-9, true, false},
    {"throttle", "Stopped by its CPU quota", "cores", "cgroup_throttled_ns", nullptr, 1e-9, false,
     false},
    {"rss", "Memory of this program (RSS)", "bytes", "process_rss_bytes", nullptr, 1, false, false},
    {"disk_read", "Device reads, whole machine", "bytes/s", "disk_bytes", "read", 1, false, false},
    {"nic_in", "Network received, whole machine", "bytes/s", "nic_received_bytes", nullptr, 1,
     false, false}};

constexpr int64_t kShortNs = 100'000'000;  // of less a rate says nothing

struct Sample {
  int64_t start_ns = 0, duration_ns = 0;
  bool counter = false;
  double value = 0;
};

// The course of each metric by its cause, in order of time. One pass over the measurements: a day
// has a million of them, of which these are few.
std::map<std::pair<std::string, std::string>, std::vector<Sample>> ReadSamples(
    const PageRun& page, const PageQuery& query) {
  std::string metrics;
  for (const Series& series : kSeries) metrics += fmt::format(", '{}'", series.metric);
  const double to_s = query.Number("to", 0);
  const collectors::SqlResult rows = page.store().Query(
      fmt::format("SELECT metric, cause, start_ns, MAX(duration_ns), SUM(value), MAX(kind) FROM "
                  "measurement_interval WHERE run_id = ?1 AND metric IN ({}) AND operator IS NULL "
                  "AND process_id IS NULL AND thread = '' AND start_ns >= ?2 AND start_ns < ?3 "
                  // Of the machine alone: those of the program's control group are part of them.
                  "AND (metric <> 'pressure_ns' OR subject = '') "
                  "GROUP BY start_ns, metric, cause ORDER BY start_ns",
                  metrics.substr(2)),
      {page.id(), NsOf(query.Number("from", 0)), to_s > 0 ? NsOf(to_s) : INT64_MAX});
  std::map<std::pair<std::string, std::string>, std::vector<Sample>> samples;
  for (const auto& row : rows.rows) {
    samples[{TextOf(row[0]), TextOf(row[1])}].push_back(
        {IntegerOf(row[2]), IntegerOf(row[3]), TextOf(row[5]) == "counter", RealOf(row[4])});
  }
  return samples;
}

// A gauge of several subjects adds up, as the parts of a counter do.
std::map<int64_t, Sample> OfSeries(
    const Series& series,
    const std::map<std::pair<std::string, std::string>, std::vector<Sample>>& all) {
  std::map<int64_t, Sample> sums;
  for (const auto& [key, samples] : all) {
    const auto& [metric, cause] = key;
    if (metric != series.metric || (series.cause != nullptr && cause != series.cause)) continue;
    for (const Sample& sample : samples) {
      Sample& sum = sums.try_emplace(sample.start_ns, Sample{sample.start_ns}).first->second;
      sum.duration_ns = std::max(sum.duration_ns, sample.duration_ns);
      sum.counter = sum.counter || sample.counter;
      sum.value += sample.value;
    }
  }
  return sums;
}

Json SeriesJson(const Series& series, const std::map<int64_t, Sample>& samples) {
  Json t = Json::array(), d = Json::array(), v = Json::array();
  for (const auto& [start_ns, sample] : samples) {
    if (sample.counter && sample.duration_ns < kShortNs) continue;
    const auto duration_ns = static_cast<double>(sample.duration_ns);
    t.push_back(std::round(static_cast<double>(start_ns) / 1e5) / 1e4);
    d.push_back(std::round(duration_ns / 1e5) / 1e4);
    const double value = sample.value * series.scale * (sample.counter ? 1e9 / duration_ns : 1);
    v.push_back(ShortNumber(series.of_one ? std::min(1.0, value) : value));
  }
  if (t.empty()) return nullptr;
  return {{"key", series.key}, {"title", series.title}, {"unit", series.unit},
          {"t", std::move(t)}, {"d", std::move(d)},     {"v", std::move(v)}};
}

std::string ResourcesAnswer(const PageRun& page, const PageQuery& query) {
  const collectors::SqlResult cores = page.store().Query(
      "SELECT last_value FROM host_summary WHERE run_id = ?1 AND metric = 'host_cores' LIMIT 1",
      {page.id()});
  const auto samples = ReadSamples(page, query);
  Json list = Json::array();
  for (const Series& series : kSeries) {
    Json json = SeriesJson(series, OfSeries(series, samples));
    if (json.is_null()) continue;
    json["of"] = nullptr;
    if (series.of_one) json["of"] = 1;
    if (series.of_cores && !cores.rows.empty())
      json["of"] = ShortNumber(NumberOf(cores.rows[0][0]));
    list.push_back(std::move(json));
  }
  const Json root = {{"schema", "headrace.resources/1"}, {"series", std::move(list)}};
  return root.dump(-1, ' ', false, Json::error_handler_t::replace);
}

HR_PAGE_ANSWER("resources", {.make = ResourcesAnswer, .in_file = true});

}  // namespace
}  // namespace headrace::dashboards
