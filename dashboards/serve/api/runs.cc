// The runs of the database, newest first, and what the database is.
#include <nlohmann/json.hpp>

#include "analysis/thresholds.h"
#include "dashboards/pages/short_number.h"
#include "dashboards/serve/site.h"
#include "dashboards/sql_values.h"

namespace headrace::dashboards {
namespace {

using Json = nlohmann::ordered_json;

constexpr double kMostRunsListed = 500;

HttpResponse JsonResponse(const Json& json) {
  HttpResponse response;
  response.body = json.dump(-1, ' ', false, Json::error_handler_t::replace);
  response.headers.push_back({"Cache-Control", "no-store"});
  return response;
}

Json RunJson(const std::vector<collectors::SqlValue>& row) {
  const auto rows = NumberOf(row[9]), wall = NumberOf(row[10]), wait = NumberOf(row[11]),
             compute = NumberOf(row[12]);
  Json rate, stall, comparison;
  bool trains = true;  // as the first page has it: else there is nobody who could wait
  if (rows && wall && *wall > 0) rate = ShortNumber(*rows * 1e9 / *wall);
  if (wait && compute && *wait + *compute > 0) {
    trains = *compute >= analysis::kComputesNothing * (*wait + *compute);
    if (trains) stall = ShortNumber(*wait / (*wait + *compute));
  }
  if (NumberOf(row[13])) comparison = IntegerOf(row[13]);
  return {{"id", IntegerOf(row[0])},
          {"name", TextOf(row[1])},
          {"tags", TextOf(row[2])},
          {"state", TextOf(row[3])},
          {"kind", TextOf(row[4])},
          {"program", TextOf(row[5])},
          {"pipeline", TextOf(row[6])},
          {"settings", TextOf(row[14])},
          {"started_seconds", RealOf(row[7]) / 1e9},
          {"duration_seconds", RealOf(row[8]) / 1e9},
          {"rows_count", ShortNumber(rows)},
          {"rows_per_second", std::move(rate)},
          {"stall_ratio", std::move(stall)},
          {"trains", trains},
          {"comparison", std::move(comparison)},
          {"comparison_verdict", TextOf(row[15])}};
}

HttpResponse Runs(Site& site, const HttpRequest&, const Target& target) {
  const PageQuery query{target.query, ""};
  const auto limit =
      static_cast<int64_t>(std::min(kMostRunsListed, std::max(1.0, query.Number("limit", 100))));
  const double after = std::min(query.Number("after", 0), 1e15);
  collectors::ReadStore store(site.cache().database());
  // A word of the question is looked for in what people call a run.
  const collectors::SqlResult rows = store.Query(
      "SELECT r.run_id, r.name, r.tags, r.state, r.kind, r.program, r.pipeline_path, "
      "r.started_realtime_ns, r.duration_ns, s.rows_count, s.wall_ns, s.wait_ns, s.compute_ns, "
      "(SELECT MAX(c.comparison_id) FROM comparison_run AS c WHERE c.run_id = r.run_id), "
      "r.settings_text, (SELECT q.verdict FROM comparison_run AS c JOIN comparison_summary AS q "
      "USING (comparison_id) WHERE c.run_id = r.run_id ORDER BY comparison_id DESC LIMIT 1) "
      "FROM run_summary AS r LEFT JOIN step_summary AS s USING (run_id) WHERE "
      "(?1 = '' OR instr(lower(r.name || ' ' || r.tags || ' ' || r.program || ' ' || "
      "r.pipeline_path || ' ' || r.run_id), lower(?1)) > 0) AND (?2 = 0 OR r.run_id < ?2) ORDER BY "
      "r.run_id DESC LIMIT ?3",
      {query.Text("q", ""), static_cast<int64_t>(after), limit + 1});
  Json list = Json::array();
  for (const auto& row : rows.rows) {
    if (static_cast<int64_t>(list.size()) < limit) list.push_back(RunJson(row));
  }
  Json next;
  if (static_cast<int64_t>(rows.rows.size()) > limit) next = list.back()["id"];
  return JsonResponse(
      {{"schema", "headrace.run_list/1"}, {"runs", std::move(list)}, {"next", std::move(next)}});
}

HttpResponse Store(Site& site, const HttpRequest&, const Target&) {
  const std::string& path = site.cache().database();
  Json latest;
  int64_t count = 0;
  collectors::ReadStore store(path);
  const collectors::SqlResult runs = store.Query("SELECT MAX(run_id), COUNT(*) FROM run_summary");
  if (!runs.rows.empty()) {
    count = IntegerOf(runs.rows[0][1]);
    if (NumberOf(runs.rows[0][0])) latest = IntegerOf(runs.rows[0][0]);
  }
  return JsonResponse({{"schema", "headrace.store/1"},
                       {"headrace_version", HEADRACE_VERSION},
                       {"program", site.cache().program()},
                       {"database", path.substr(path.rfind('/') + 1)},
                       {"latest", std::move(latest)},
                       {"runs_count", count}});
}

HttpResponse Session(Site& site, const HttpRequest& request, const Target&) {
  return OpenSession(request, site.rules());
}

HR_ENDPOINT("/api/runs", {.make = Runs});
HR_ENDPOINT("/api/store", {.make = Store});
HR_ENDPOINT("/api/session", {.make = Session, .method = "POST"});

}  // namespace
}  // namespace headrace::dashboards
