// What the machine did while the run went on: small charts of cores, pressure, memory and devices.
#include <cmath>
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
    {"disk_read", "Device reads", "bytes/s", "disk_bytes", "read", 1, false, false},
    {"nic_in", "Network received", "bytes/s", "nic_received_bytes", nullptr, 1, false, false}};

constexpr int64_t kShortNs = 100'000'000;  // of less a rate says nothing

Json SeriesJson(const PageRun& page, const Series& series, const PageQuery& query) {
  const auto from = NsOf(query.Number("from", 0));
  const double to_s = query.Number("to", 0);
  const auto to = to_s > 0 ? NsOf(to_s) : INT64_MAX;
  // A gauge of several subjects adds up, as the parts of a counter do.
  const collectors::SqlResult rows = page.store().Query(
      "SELECT start_ns, MAX(duration_ns), SUM(value), MAX(kind) FROM measurement_interval WHERE "
      "run_id = ?1 AND metric = ?2 AND operator IS NULL AND process_id IS NULL AND thread = '' AND "
      "(?3 IS NULL OR cause = ?3) AND start_ns >= ?4 AND start_ns < ?5 GROUP BY start_ns ORDER BY "
      "start_ns",
      {page.id(), std::string(series.metric),
       series.cause != nullptr ? collectors::SqlValue(std::string(series.cause))
                               : collectors::SqlValue(std::monostate{}),
       from, to});
  Json t = Json::array(), d = Json::array(), v = Json::array();
  for (const auto& row : rows.rows) {
    const double duration_ns = RealOf(row[1]);
    const bool counter = TextOf(row[3]) == "counter";
    if (counter && duration_ns < kShortNs) continue;
    t.push_back(std::round(RealOf(row[0]) / 1e5) / 1e4);
    d.push_back(std::round(duration_ns / 1e5) / 1e4);
    const double value = RealOf(row[2]) * series.scale * (counter ? 1e9 / duration_ns : 1);
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
  Json list = Json::array();
  for (const Series& series : kSeries) {
    Json json = SeriesJson(page, series, query);
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
