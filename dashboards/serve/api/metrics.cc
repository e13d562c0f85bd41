// The newest run's metrics, for a Prometheus that scrapes them.
#include "dashboards/export/openmetrics.h"
#include "dashboards/serve/site.h"
#include "dashboards/sql_values.h"

namespace headrace::dashboards {
namespace {

HttpResponse Metrics(Site& site, const HttpRequest&, const Target&) {
  collectors::ReadStore store(site.cache().database());
  // The one that is being recorded, if there is one.
  const collectors::SqlResult run = store.Query(
      "SELECT run_id FROM run_summary ORDER BY state = 'recording' DESC, run_id DESC LIMIT 1");
  HttpResponse response;
  response.type = kOpenMetricsType;
  response.headers.push_back({"Cache-Control", "no-store"});
  response.body = run.rows.empty() ? "# EOF\n" : OpenMetrics(store, IntegerOf(run.rows[0][0]));
  return response;
}

HR_ENDPOINT("/metrics", {.make = Metrics});

}  // namespace
}  // namespace headrace::dashboards
