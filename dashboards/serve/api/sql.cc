// SQL that a person wrote: read-only, with an end to its time, its rows and its bytes.
#include <cmath>
#include <nlohmann/json.hpp>

#include "base/clock.h"
#include "base/error.h"
#include "dashboards/serve/site.h"
#include "dashboards/sql_values.h"

namespace headrace::dashboards {
namespace {

using Json = nlohmann::ordered_json;

constexpr int64_t kMostNs = 5'000'000'000;
constexpr size_t kMostBytes = 1 << 20;
constexpr size_t kMostRows = 1000;
constexpr size_t kMostSqlBytes = 64 << 10;

Json CellJson(const collectors::SqlValue& value) {
  if (const auto* integer = std::get_if<int64_t>(&value)) {
    // A number of JavaScript holds no more digits.
    constexpr int64_t kExact = int64_t{1} << 53;
    if (*integer > kExact || *integer < -kExact) return std::to_string(*integer);
    return *integer;
  }
  if (const auto* real = std::get_if<double>(&value)) {
    return std::isfinite(*real) ? Json(*real) : Json(nullptr);
  }
  if (const auto* text = std::get_if<std::string>(&value)) return *text;
  return nullptr;
}

HttpResponse Sql(Site& site, const HttpRequest& request, const Target&) {
  const Json asked = Json::parse(request.body, nullptr, false);
  if (!asked.is_object() || !asked.contains("sql") || !asked["sql"].is_string()) {
    return ErrorResponse(400, "there is no SQL in the question", "the question",
                         "send {\"sql\": \"SELECT ...\"}");
  }
  const std::string sql = asked["sql"].get<std::string>();
  if (sql.size() > kMostSqlBytes) {
    return ErrorResponse(413, "the SQL is longer than 64 KiB", "SQL", "send less");
  }
  size_t limit = kMostRows;
  if (asked.contains("limit") && asked["limit"].is_number()) {
    const double wanted = asked["limit"].get<double>();
    if (wanted >= 1 && wanted < kMostRows) limit = static_cast<size_t>(wanted);
  }
  collectors::ReadStore store(site.cache().database());
  const int64_t began_ns = MonotonicNs();
  const collectors::SqlResult result =
      store.QueryUntrusted(sql, {.ns = kMostNs, .bytes = kMostBytes, .rows = limit, .cut = true});
  Json rows = Json::array();
  for (const auto& row : result.rows) {
    Json cells = Json::array();
    for (const auto& value : row) cells.push_back(CellJson(value));
    rows.push_back(std::move(cells));
  }
  const Json root = {{"schema", "headrace.sql/1"},
                     {"columns", result.columns},
                     {"rows", std::move(rows)},
                     {"truncated", result.cut},
                     {"elapsed_seconds", static_cast<double>(MonotonicNs() - began_ns) / 1e9}};
  HttpResponse response;
  response.body = root.dump(-1, ' ', false, Json::error_handler_t::replace);
  return response;
}

HR_ENDPOINT("/api/sql", {.make = Sql, .method = "POST"});

}  // namespace
}  // namespace headrace::dashboards
