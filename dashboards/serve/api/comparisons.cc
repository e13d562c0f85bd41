// Comparisons that were made, and what came of one.
#include <charconv>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "dashboards/serve/site.h"
#include "dashboards/sql_values.h"

namespace headrace::dashboards {
namespace {

using Json = nlohmann::ordered_json;

Json SummaryJson(const std::vector<collectors::SqlValue>& row) {
  Json duration;
  if (NumberOf(row[3])) duration = RealOf(row[3]) / 1e9;
  return {{"id", IntegerOf(row[0])},
          {"title", TextOf(row[1])},
          {"a", TextOf(row[5])},
          {"b", TextOf(row[6])},
          {"pairs", IntegerOf(row[8])},
          {"verdict", TextOf(row[7])},
          {"state", TextOf(row[4])},
          {"started_seconds", RealOf(row[2]) / 1e9},
          {"duration_seconds", std::move(duration)}};
}

constexpr const char* kSummaries =
    "SELECT comparison_id, name, started_realtime_ns, duration_ns, state, a_label, b_label, "
    "verdict, pairs_count, result_json FROM comparison_summary";

HttpResponse One(collectors::ReadStore& store, int64_t id) {
  const collectors::SqlResult found =
      store.Query(std::string(kSummaries) + " WHERE comparison_id = ?1", {id});
  if (found.rows.empty()) {
    return ErrorResponse(404, "there is no comparison " + std::to_string(id), "",
                         "the list is at /compare");
  }
  Json json = Json::parse(TextOf(found.rows[0][9]), nullptr, false);
  if (!json.is_object()) json = Json::object();  // it never came to a result
  json["summary"] = SummaryJson(found.rows[0]);
  Json runs = Json::array();
  for (const auto& row : store
                             .Query("SELECT pair_index, side, run_id, left_out FROM comparison_run "
                                    "WHERE comparison_id = ?1 ORDER BY order_index",
                                    {id})
                             .rows) {
    Json run;
    if (NumberOf(row[2])) run = IntegerOf(row[2]);
    runs.push_back({{"pair", IntegerOf(row[0])},
                    {"side", TextOf(row[1])},
                    {"run", std::move(run)},
                    {"left_out", TextOf(row[3])}});
  }
  json["made_by"] = std::move(runs);
  HttpResponse response;
  response.body = json.dump(-1, ' ', false, Json::error_handler_t::replace);
  return response;
}

HttpResponse Comparisons(Site& site, const HttpRequest&, const Target& target) {
  collectors::ReadStore store(site.cache().database());
  const std::string prefix = "/api/comparisons/";
  if (target.path.starts_with(prefix)) {
    int64_t id = 0;
    const char* end = target.path.data() + target.path.size();
    const auto [rest, error] = std::from_chars(target.path.data() + prefix.size(), end, id);
    if (error != std::errc() || rest != end) {
      return ErrorResponse(404, "there is nothing at this address", "", "the list is at /compare");
    }
    return One(store, id);
  }
  Json list = Json::array();
  for (const auto& row :
       store.Query(std::string(kSummaries) + " ORDER BY comparison_id DESC LIMIT 500").rows) {
    list.push_back(SummaryJson(row));
  }
  HttpResponse response;
  response.body = Json({{"schema", "headrace.comparison_list/1"}, {"comparisons", std::move(list)}})
                      .dump(-1, ' ', false, Json::error_handler_t::replace);
  return response;
}

HR_ENDPOINT("/api/comparisons", {.make = Comparisons, .below = true});

}  // namespace
}  // namespace headrace::dashboards
