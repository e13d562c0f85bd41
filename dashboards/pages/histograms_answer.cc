// How long steps took, and requests to devices by size and latency.
#include <map>
#include <nlohmann/json.hpp>

#include "dashboards/pages/page_run.h"
#include "dashboards/pages/short_number.h"
#include "dashboards/sql_values.h"

namespace headrace::dashboards {
namespace {

using Json = nlohmann::ordered_json;

std::string HistogramsAnswer(const PageRun& page, const PageQuery&) {
  Json steps = Json::array();
  for (const auto& row : page.store()
                             .Query("SELECT step_ns, steps_count FROM step_time_histogram WHERE "
                                    "run_id = ?1 ORDER BY step_ns",
                                    {page.id()})
                             .rows) {
    steps.push_back({ShortNumber(RealOf(row[0]) / 1e9), IntegerOf(row[1])});
  }
  // Of operators where there are any, else of the recorded processes.
  const bool operators =
      !page.store()
           .Query("SELECT 1 FROM operator_summary WHERE run_id = ?1 LIMIT 1", {page.id()})
           .rows.empty();
  const collectors::SqlResult rows = page.store().Query(
      std::string("SELECT direction, metric, bucket, SUM(events_count) FROM io_histogram WHERE "
                  "run_id = ?1 AND metric IN ('block_size_count', 'block_latency_count') AND ") +
          (operators ? "operator IS NOT NULL" : "process_id IS NOT NULL") +
          " GROUP BY direction, metric, bucket ORDER BY direction, metric, bucket",
      {page.id()});
  std::map<std::string, std::pair<Json, Json>> io;  // direction -> sizes, latencies
  for (const auto& row : rows.rows) {
    auto& [sizes, latencies] =
        io.try_emplace(TextOf(row[0]), Json::array(), Json::array()).first->second;
    if (TextOf(row[1]) == "block_size_count") {
      sizes.push_back({IntegerOf(row[2]), IntegerOf(row[3])});
    } else {
      latencies.push_back({ShortNumber(RealOf(row[2]) / 1e9), IntegerOf(row[3])});
    }
  }
  Json list = Json::array();
  for (auto& [direction, both] : io) {
    list.push_back({{"direction", direction},
                    {"size", std::move(both.first)},
                    {"latency", std::move(both.second)}});
  }
  const Json root = {
      {"schema", "headrace.histograms/1"}, {"steps", std::move(steps)}, {"io", std::move(list)}};
  return root.dump(-1, ' ', false, Json::error_handler_t::replace);
}

// Why threads were off a CPU, by operator.
std::string OffCpuAnswer(const PageRun& page, const PageQuery&) {
  const collectors::SqlResult rows = page.store().Query(
      "SELECT operator, stage, cause, class, SUM(blocked_ns), SUM(blocked_count), SUM(wait_ns) "
      "FROM off_cpu_summary WHERE run_id = ?1 AND operator IS NOT NULL GROUP BY 1, 2, 3, 4 ORDER "
      "BY 5 "
      "DESC LIMIT 200",
      {page.id()});
  Json list = Json::array();
  for (const auto& row : rows.rows) {
    const auto blocked = NumberOf(row[4]);
    const auto wait = NumberOf(row[6]);
    list.push_back(
        {{"operator", TextOf(row[0])},
         {"stage", TextOf(row[1])},
         {"cause", TextOf(row[2])},
         {"class", TextOf(row[3])},
         {"seconds", ShortNumber(blocked ? std::optional(*blocked / 1e9) : std::nullopt)},
         {"count", ShortNumber(NumberOf(row[5]))},
         {"queue_seconds", ShortNumber(wait ? std::optional(*wait / 1e9) : std::nullopt)}});
  }
  const Json root = {{"schema", "headrace.off_cpu/1"}, {"rows", std::move(list)}};
  return root.dump(-1, ' ', false, Json::error_handler_t::replace);
}

HR_PAGE_ANSWER("histograms", {.make = HistogramsAnswer, .in_file = true});
HR_PAGE_ANSWER("off_cpu", {.make = OffCpuAnswer, .in_file = true});

}  // namespace
}  // namespace headrace::dashboards
